"""The smaller promises to users of a stateful agent: execution modes, hooks around tools, keys, warnings, payloads, ends."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from antiphon import (
    Agent,
    Block,
    Dropped,
    Hooks,
    Limits,
    MessageFinished,
    RunError,
    RunFinished,
    Stop,
    ToolContext,
    ToolFinished,
    ToolOptions,
    ToolResult,
    ToolResultMessage,
    ToolStarted,
    UseResult,
    Warned,
    aclose,
    tool,
)
from antiphon.providers.openai_chat.provider import OpenAIChat
from antiphon.testing import Chaos, Scripted, ServedReply, chaos_server
from antiphon.types.request import Delta, FinishChunk, ModelRequest, TextChunk, WarningChunk

from .talks import ADD, AT_ONCE, Gate, add, call, fails, heard, lines, talk

pytestmark = pytest.mark.anyio


@pytest.mark.parity("C6")
async def test_tools_run_together_and_their_results_stand_in_the_order_of_the_calls() -> None:
    """The slow first call holds nobody up; the model reads results in the order in which it asked."""
    gates = {"w1": Gate(), "w2": Gate()}

    @tool
    async def wait(ctx: ToolContext[Any]) -> str:
        """Wait."""
        await gates[ctx.call_id].wait()
        return ctx.call_id

    chat, _ = talk([call("wait", "w1"), call("nope", "n1"), call("wait", "w2")], "ok", tools=[wait])
    told = heard(chat)
    async with anyio.create_task_group() as group:
        group.start_soon(chat.prompt, "go")
        await gates["w1"].reached.wait()
        await gates["w2"].reached.wait()
        gates["w2"].open()
        while len(told.of(ToolFinished)) < 2:
            await anyio.lowlevel.checkpoint()
        gates["w1"].open()
    assert [event.call_id for event in told.of(ToolFinished)] == ["n1", "w2", "w1"]
    results = [message.call_id for message in chat.messages if isinstance(message, ToolResultMessage)]
    assert results == ["w1", "n1", "w2"]


@pytest.mark.parity("C6")
async def test_the_execution_mode_can_be_switched_between_runs() -> None:
    most: list[int] = []
    running: list[str] = []

    @tool
    async def work(ctx: ToolContext[Any]) -> str:
        """Work."""
        running.append(ctx.call_id)
        most.append(len(running))
        await anyio.lowlevel.checkpoint()
        running.remove(ctx.call_id)
        return "ok"

    calls = [call("work", f"w{n}") for n in range(3)]
    chat, _ = talk(calls, "a", calls, "b", calls, "c", tools=[work])
    for options, together in [
        (ToolOptions(), 3),
        (ToolOptions(execution="sequential"), 1),
        (ToolOptions(max_parallel=2), 2),
    ]:
        most.clear()
        chat.configure(tool_options=options)
        await chat.prompt("go")
        assert max(most) == together


@pytest.mark.parity("C7")
async def test_a_hook_may_block_a_call_and_the_reason_reaches_the_model() -> None:
    seen: list[Any] = []

    def before(context: Any) -> Block:
        seen.append((context.call.id, context.arguments, context.message.calls))
        return Block("not today")

    chat, model = talk([ADD], "ok", tools=[add], hooks=Hooks[Any](before_tool_execute=before))
    told = heard(chat)
    await chat.prompt("go")
    assert seen == [("a1", {"a": 2, "b": 3}, (ADD,))]
    assert told.of(ToolStarted) == []
    assert told.one(ToolFinished).outcome == "denied"
    assert "not today" in lines(model.requests[1].messages)[-1]


@pytest.mark.parity("C7")
@pytest.mark.parametrize(
    ("change", "result"),
    [
        (UseResult(content="other"), ("other", {"d": 1}, False)),
        (UseResult(details={"e": 2}), ("5", {"e": 2}, False)),
        (UseResult(is_error=True), ("5", {"d": 1}, True)),
        (UseResult(content="x", details=None, is_error=True), ("x", None, True)),
        (None, ("5", {"d": 1}, False)),
    ],
)
async def test_a_hook_may_override_each_field_of_a_result_alone(change: Any, result: Any) -> None:
    """Before the finish event; what it leaves out stays."""

    @tool(name="add")
    async def detailed(a: int, b: int) -> ToolResult:
        """Add."""
        return ToolResult(str(a + b), details={"d": 1})

    chat, _ = talk([ADD], "ok", tools=[detailed], hooks=Hooks[Any](after_tool_execute=lambda context: change))
    told = heard(chat)
    await chat.prompt("go")
    kept = chat.messages[2]
    assert isinstance(kept, ToolResultMessage)
    assert (kept.text, kept.details, kept.is_error) == result
    assert told.one(ToolFinished).result == kept


@pytest.mark.parity("C7")
async def test_the_after_hook_sees_refusals_too() -> None:
    seen: list[Any] = []
    hooks = Hooks[Any](
        before_tool_execute=lambda context: Block("no"),
        after_tool_execute=lambda context: seen.append((context.result.outcome, context.result.is_error)),
    )
    chat, _ = talk([ADD], "ok", tools=[add], hooks=hooks)
    await chat.prompt("go")
    assert seen == [("denied", True)]


@pytest.mark.parity("C11")
async def test_session_id_and_meta_go_with_every_request_of_the_run() -> None:
    """A provider's cache is found by the one, the application's trace by the other; neither is looked at."""
    meta = {"trace": object()}
    chat, model = talk([ADD], "ok", tools=[add])
    chat.session_id = "s-9"
    await chat.prompt("go", meta=meta)
    assert [(request.session_id, request.meta) for request in model.requests] == [("s-9", meta)] * 2
    assert model.requests[0].meta is meta


@pytest.mark.parity("C11")
async def test_the_key_is_asked_for_at_every_request() -> None:
    """Keys expire in the middle of a long run; one that is asked for once is a run that ends in 401."""
    asked: list[str] = []

    async def api_key(provider: str) -> str:
        await anyio.lowlevel.checkpoint()
        asked.append(provider)
        return f"key-{len(asked)}"

    def answer(path: str, body: dict[str, Any]) -> ServedReply:
        done = body["messages"][-1]["role"] == "tool"
        return ServedReply(text="five") if done else ServedReply(calls=[("a1", "add", {"a": 2, "b": 3})])

    async with chaos_server(answer, Chaos(rate=0)) as server:
        chat = Agent(OpenAIChat("m", base_url=server.url, api_key=api_key), tools=[add]).conversation()
        assert (await chat.prompt("2+3?")).text == "five"
        await aclose()
    assert len(asked) == len(server.served) == 2


class Odd:
    """A model that warns and goes on."""

    info = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        yield WarningChunk("sse_parse_error", "half a line was skipped")
        yield TextChunk("fine")
        yield FinishChunk()


@pytest.mark.parity("C13")
@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
async def test_warnings_reach_a_callback_and_an_event(wait: bool) -> None:
    """What is odd and not fatal should be seen by somebody, in code and words."""
    heard_of: list[tuple[str, str]] = []

    async def later(code: str, text: str) -> None:
        await anyio.lowlevel.checkpoint()
        heard_of.append((code, text))

    on_warning = later if wait else (lambda code, text: heard_of.append((code, text)))
    chat = Agent(Odd(), hooks=Hooks[Any](on_warning=on_warning), recovery=AT_ONCE).conversation()
    told = heard(chat)
    result = await chat.prompt("go")
    warning = ("sse_parse_error", "half a line was skipped")
    assert heard_of == [warning]
    assert (told.one(Warned).code, told.one(Warned).text) == warning
    assert result.warnings == (warning,)


@pytest.mark.parity("C13")
async def test_warnings_from_anywhere_reach_the_callback() -> None:
    """A listener that raises, a result that is no JSON: they are oddities like a provider's."""
    codes: list[str] = []

    @tool
    async def odd() -> ToolResult:
        """Be odd."""
        return ToolResult("x", details=object())

    chat, _ = talk([call("odd", "o1")], "ok", tools=[odd])
    chat.configure(hooks=Hooks[Any](on_warning=lambda code, text: codes.append(code)))
    chat.subscribe(lambda event: 1 / 0 if isinstance(event, ToolStarted) else None)
    result = await chat.prompt("go")
    assert result.status == "done"
    assert "listener_raised" in codes
    assert [code for code, _ in result.warnings] == codes
    assert len(codes) == 2


@pytest.mark.parity("C13")
@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
async def test_a_callback_that_fails_on_a_warning_ends_nothing(wait: bool) -> None:
    """A warning must not be worse than what it warns of."""

    def fail(code: str, text: str) -> None:
        raise ValueError("broken callback")

    async def fail_later(code: str, text: str) -> None:
        raise ValueError("broken callback")

    hooks = Hooks[Any](on_warning=fail_later if wait else fail)
    result = await Agent(Odd(), hooks=hooks, recovery=AT_ONCE).conversation().prompt("go")
    assert (result.status, result.text) == ("done", "fine")


@pytest.mark.parity("C21")
@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
async def test_on_payload_looks_at_what_goes_out_and_may_replace_it(wait: bool) -> None:
    """The last word on the JSON of a request; returning nothing changes nothing."""
    seen: list[dict[str, Any]] = []

    def look(payload: dict[str, Any]) -> None:
        seen.append(payload)

    def mark(payload: dict[str, Any]) -> dict[str, Any]:
        return {**payload, "user": "marked"}

    async def mark_later(payload: dict[str, Any]) -> dict[str, Any]:
        await anyio.lowlevel.checkpoint()
        return mark(payload)

    async with chaos_server(lambda path, body: ServedReply(text="ok"), Chaos(rate=0)) as server:
        agent = Agent(OpenAIChat("m", base_url=server.url, api_key="k"), hooks=Hooks[Any](on_payload=look))
        chat = agent.conversation()
        await chat.prompt("hello", hooks=Hooks[Any](on_payload=mark_later if wait else mark))
        await aclose()
    assert seen[0]["messages"][-1]["content"] == "hello"
    assert b'"user":"marked"' in server.served[0].body.replace(b": ", b":")


@pytest.mark.parity("C21")
async def test_a_failing_on_payload_is_named() -> None:
    """Nothing is sent, nothing is repeated, and the model is not blamed for it."""
    hooks = Hooks[Any](on_payload=fails)
    async with chaos_server(lambda path, body: ServedReply(text="ok"), Chaos(rate=0)) as server:
        agent = Agent(OpenAIChat("m", base_url=server.url, api_key="k"), hooks=hooks, recovery=AT_ONCE)
        with pytest.raises(RunError, match="on_payload raised ValueError: broken"):
            await agent.conversation().prompt("hello")
        await aclose()
    assert server.served == []


@pytest.mark.parity("C17")
async def test_a_tool_has_a_label_gets_its_call_and_fails_by_raising() -> None:
    """Label for people; call id, arguments, signal and progress for the body; content and details out of it."""
    got: list[Any] = []

    @tool(label="Add numbers", name="add")
    async def labelled(a: int, b: int, ctx: ToolContext[Any]) -> ToolResult:
        """Add."""
        got.append((ctx.call_id, a, b, ctx.cancelled))
        ctx.progress("half")
        if a == 0:
            raise ValueError("nothing to add")
        return ToolResult(str(a + b), details={"sum": a + b})

    assert labelled.label == "Add numbers"
    chat, _ = talk([ADD, call("add", "a2", '{"a": 0, "b": 1}')], "ok", tools=[labelled])
    await chat.prompt("go")
    assert sorted(got) == [("a1", 2, 3, False), ("a2", 0, 1, False)]
    first, second = [message for message in chat.messages if isinstance(message, ToolResultMessage)]
    assert (first.text, first.details, first.outcome) == ("5", {"sum": 5}, "ok")
    assert (second.is_error, second.outcome) == (True, "error")
    assert "nothing to add" in second.text


@pytest.mark.parity("C21")
async def test_a_tool_result_may_end_the_turn() -> None:
    """Nothing is left to say: the other calls of the reply still run, and no further request is made."""

    @tool
    async def done() -> ToolResult:
        """Finish."""
        return ToolResult("finished", end_turn=True)

    chat, model = talk([call("done", "d1"), ADD], "never", tools=[done, add])
    result = await chat.prompt("go")
    assert (result.status, len(model.requests)) == ("done", 1)
    assert lines(chat.messages)[2:] == ["d1 ok: finished", "a1 ok: 5"]
    assert (await chat.prompt("more")).text == "never"


@pytest.mark.parity("C21")
async def test_arguments_can_be_read_while_they_stream() -> None:
    """A viewer shows the file that is being written; only the whole text ever runs a tool."""
    text = '{"a": 2, "b": 3}'
    seen: list[Any] = []
    chat = Agent(Scripted([call("add", "a1", text)], "ok", piece=1), tools=[add], recovery=AT_ONCE).conversation()
    async with chat.live("go") as run:
        run.subscribe(
            lambda event: seen.append(run.partial_arguments("a1")) if type(event).__name__ == "ToolCallDelta" else None
        )
        await run
    assert seen[0] == {}
    assert {"a": 2} in seen
    assert seen[-1] == {"a": 2, "b": 3}


async def test_e6_why_it_stopped_is_one_of_a_closed_list_with_a_detail() -> None:
    """Nobody should have to guess why a loop ended."""

    @tool(needs_approval=True)
    async def ask() -> str:
        """Ask."""
        return "x"

    ends: dict[str, Any] = {
        "done": talk("a"),
        "limit": talk([ADD], "b", tools=[add], limits=Limits(turns=1)),
        "stopped": talk("a", hooks=Hooks[Any](before_model_request=lambda context: Stop("enough"))),
        "paused": talk([call("ask", "q1")], tools=[ask]),
        "error": talk(*[Dropped("cut")] * 4),
        "aborted": talk(lambda request: ends["aborted"][0].abort("by a person") or "a"),
    }
    details = {
        "done": None,
        "limit": "the limit of 1 turns was reached",
        "stopped": "enough",
        "paused": "decisions are missing",
        "error": "cut (after 4 attempts)",
        "aborted": "by a person",
    }
    for status, (chat, _) in ends.items():
        told = heard(chat)
        try:
            result = await chat.prompt("go")
        except RunError as error:
            result = error.result
        assert result.status == status
        assert result.reason == details[status]
        assert told.one(RunFinished).status == status


async def test_no_task_is_left_of_a_conversation() -> None:
    """Idle means idle."""
    before = asyncio.all_tasks()
    gate = Gate()
    chat, _ = talk([ADD], "a", ["b", gate], tools=[add])
    chat.subscribe(
        lambda event: chat.abort() if isinstance(event, MessageFinished) and len(chat.messages) == 5 else None
    )
    await chat.prompt("one")
    async with chat.live("two"):
        pass
    assert asyncio.all_tasks() == before
