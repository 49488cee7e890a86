"""Which message broke the beginning that a server had read already."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from antiphon import Agent, Hooks, Limits, ModelContext, UseRequest, tool
from antiphon.providers.anthropic.encode import AnthropicEncoder
from antiphon.providers.gemini.encode import GeminiEncoder
from antiphon.providers.openai_chat.encode import ChatEncoder
from antiphon.providers.openai_chat.profiles import PROFILES
from antiphon.providers.openai_chat.provider import OpenAIChat
from antiphon.providers.openai_responses.encode import ResponsesEncoder
from antiphon.testing.quirks import Expected, Quirk, serving
from antiphon.types.cancel import CancelToken
from antiphon.types.content import Image, Text, Thinking, ToolCall
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from antiphon.types.request import ModelRequest, ModelSettings

CALLING = {"choices": [{"index": 0, "delta": {"tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]}}]}
QUIRK_REPLIES = Quirk(
    "", "", "", "openai_chat", "", Expected(), pieces=(f"data: {json.dumps(CALLING)}\n\n", "data: [DONE]\n\n")
)


@tool
def look() -> str:
    """Look."""
    return "x" * 50


def forget(context: ModelContext) -> UseRequest:
    """Every result but the last becomes a word."""
    results = [place for place, each in enumerate(context.messages) if isinstance(each, ToolResultMessage)]
    messages = [
        replace(each, parts=(Text("[old]"),)) if isinstance(each, ToolResultMessage) and place in results[:-1] else each
        for place, each in enumerate(context.messages)
    ]
    return UseRequest(messages=messages)


ENCODERS: dict[str, Callable[[], Any]] = {
    "openai_chat": lambda: ChatEncoder("m", PROFILES["deepseek"]),
    "openai_responses": lambda: ResponsesEncoder("m"),
    "anthropic": lambda: AnthropicEncoder("claude-sonnet-4-5"),
    "gemini": lambda: GeminiEncoder("gemini-3-pro"),
}
EACH = pytest.mark.parametrize("name", ENCODERS)


def exchange(number: int) -> list[Message]:
    """A user's turn with two calls and their results."""
    calls = [ToolCall(id=f"{place}{number}", name="look", arguments=f'{{"n":{number}}}') for place in "ab"]
    return [
        UserMessage.of(f"turn {number}"),
        AssistantMessage(parts=(Thinking(text="t", origin="deepseek:m"), Text("I look."), *calls)),
        *[ToolResultMessage(call_id=call.id, tool_name="look", parts=(Text(f"{call.id} is fine"),)) for call in calls],
        AssistantMessage(parts=(Text(f"done {number}"),)),
    ]


def transcript(turns: int) -> list[Message]:
    return [message for number in range(turns) for message in exchange(number)]


def asked(encoder: Any, messages: Any, session: str | None = "s", **settings: Any) -> Any:
    encoder.encode(ModelRequest(messages=messages, session_id=session, settings=ModelSettings(**settings)))
    return encoder.watch.report


@EACH
def test_a_transcript_that_grows_breaks_nothing(name: str) -> None:
    encoder, history = ENCODERS[name](), History()
    for number in range(20):
        history = history.extended(*exchange(number))
        asked(encoder, history)
    report = encoder.watch.report
    assert (report.requests, report.breaks, report.message) == (20, 0, None)


@EACH
def test_a_list_that_grows_breaks_nothing_either(name: str) -> None:
    """The application may make a new list for every request, as long as it says the same."""
    encoder = ENCODERS[name]()
    for number in range(1, 6):
        asked(encoder, tuple(transcript(number)))
    assert encoder.watch.report.breaks == 0


@EACH
@pytest.mark.parametrize("place", range(15))
def test_l04_the_first_message_that_reads_otherwise_is_named(name: str, place: int) -> None:
    """A hook that cuts old results, or writes the date into the first message, costs the whole cache."""
    encoder, messages = ENCODERS[name](), transcript(3)
    asked(encoder, History(messages))
    old = messages[place]
    if isinstance(old, ToolResultMessage):
        messages[place] = ToolResultMessage(call_id=old.call_id, tool_name="look", parts=(Text("[cut]"),))
    elif isinstance(old, UserMessage):
        messages[place] = UserMessage.of("changed")
    else:
        messages[place] = AssistantMessage(parts=(Text("Other."), *old.calls))  # pyright: ignore[reportAttributeAccessIssue]
    report = asked(encoder, History([*messages, UserMessage.of("next")]))
    assert (report.breaks, report.message, report.why) == (1, place, "messages")
    assert report.lost > 0
    assert asked(encoder, History([*messages, UserMessage.of("next")])).breaks == 1


@EACH
def test_messages_that_are_gone_from_the_front_are_told_as_a_change_of_the_first(name: str) -> None:
    encoder, messages = ENCODERS[name](), transcript(3)
    asked(encoder, messages)
    report = asked(encoder, messages[5:])
    assert (report.breaks, report.message) == (1, 0)


@EACH
def test_messages_that_are_gone_from_the_end_are_told_by_their_number(name: str) -> None:
    encoder, messages = ENCODERS[name](), transcript(3)
    asked(encoder, messages)
    report = asked(encoder, messages[:10])
    assert (report.breaks, report.message) == (1, 10)
    assert report.kept > 0


def test_a_rule_that_writes_older_messages_otherwise_is_counted_as_such() -> None:
    """With thinking off, no reasoning goes back: everything behind the first of it is read again."""
    encoder, history = ENCODERS["openai_chat"](), History(transcript(2))
    asked(encoder, history, thinking="high")
    report = asked(encoder, history, thinking="off")
    assert (report.breaks, report.message, report.why) == (1, 1, "rules")


def test_sessions_are_told_apart_and_so_are_runs_without_one() -> None:
    encoder = ENCODERS["openai_chat"]()
    asked(encoder, transcript(1), "one")
    asked(encoder, [UserMessage.of("x")], "two")
    asked(encoder, [UserMessage.of("y")], None)
    asked(encoder, [UserMessage.of("z")], None)
    assert asked(encoder, transcript(2), "one").breaks == 0


def test_the_requests_of_one_run_share_their_token_and_are_compared_by_it() -> None:
    encoder, token = ENCODERS["openai_chat"](), CancelToken()
    for messages in ([UserMessage.of("a")], [UserMessage.of("b")]):
        encoder.encode(ModelRequest(messages=messages, cancel=token))
    assert encoder.watch.report.breaks == 1


def test_requests_that_stand_alone_are_not_kept() -> None:
    encoder = ENCODERS["openai_chat"]()
    for messages in ([UserMessage.of("a")], [UserMessage.of("b")]):
        encoder.encode(ModelRequest(messages=messages))
    assert (encoder.watch.report.requests, encoder.watch.report.breaks, encoder.watch._trails) == (2, 0, {})


@pytest.mark.anyio
async def test_a_hook_that_cuts_old_results_is_found_out_in_a_run() -> None:
    """As an application meets it: the counter on the model, after a run with a hook that saves tokens the wrong way."""
    kept = QUIRK_REPLIES
    async with serving(kept) as url:
        model = OpenAIChat("m", base_url=f"{url}/v1")
        agent = Agent(model=model, tools=[look], hooks=Hooks(before_model_request=forget))
        result = await agent.run("go", limits=Limits(turns=4))
    assert result.status == "limit"
    assert (model.prefix_report.breaks, model.prefix_report.message, model.prefix_report.why) == (2, 4, "messages")


def test_what_is_kept_for_the_comparison_is_bounded() -> None:
    encoder = ENCODERS["openai_chat"]()
    for number in range(200):
        asked(encoder, [UserMessage.of("x" * 2**20)], str(number))
    assert len(encoder.watch._trails) <= 64
    assert encoder.watch._size <= 2**24


# --- over a hundred turns


def turn(number: int) -> list[list[Message]]:
    """What a turn adds, request by request: a question, two calls with a picture among the results, a word in between."""
    steered: list[Message] = [UserMessage.of(f"and {number}?")] if number % 3 == 0 else []
    calls = [ToolCall(id=f"c{place}", name="look", arguments='{"n": 1}') for place in range(number % 3 + 1)]
    results = [
        ToolResultMessage(
            call_id=call.id,
            tool_name="look",
            parts=(Text("r"), Image("iVBORw0KGgo=")) if number % 4 == 0 else (Text("r"),),
            is_error=number % 5 == 0,
        )
        for call in calls
    ]
    question = [UserMessage.of(f"turn {number}", *([Image("iVBORw0KGgo=")] if number % 7 == 0 else []))]
    opening: list[Message] = [SystemMessage.of("now")] if number % 11 == 3 else []
    reply = AssistantMessage(parts=(Thinking(text="t", origin="deepseek:m"), *calls))
    return [[*opening, *question], [reply, *results, *steered], [AssistantMessage(parts=(Text("done"),))]]


def items(name: str, body: dict[str, Any]) -> list[Any]:
    """The messages of a body, cache marks taken out."""
    key = {"openai_responses": "input", "gemini": "contents"}.get(name, "messages")

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {field: plain(each) for field, each in value.items() if field != "cache_control"}
        return [plain(each) for each in value] if isinstance(value, list) else value

    return plain(body[key])


def message_bytes(name: str, encoder: Any, history: History) -> bytes:
    """The bytes of a request's messages without cache marks, and without what closes their list."""
    cache = ModelSettings(cache="none")
    raw: bytes = encoder.encode(ModelRequest(messages=history, session_id="s", settings=cache))
    key = {"openai_responses": b'"input":[', "gemini": b'"contents":['}.get(name, b'"messages":[')
    return raw.partition(key)[2].removesuffix(b"]}")


@pytest.mark.parity("C21")
@EACH
def test_l04_over_a_hundred_turns_each_request_begins_with_the_messages_of_the_one_before(name: str) -> None:
    """With tools, pictures, failures, steering, and ids that come again in every turn."""
    encoder, history, sent = ENCODERS[name](), History(), [b""]
    for number in range(100):
        for added in turn(number):
            history = history.extended(*added)
            if not isinstance(history[-1], AssistantMessage):
                sent.append(message_bytes(name, encoder, history))
    assert all(later.startswith(earlier) for earlier, later in pairwise(sent))
    fresh = ENCODERS[name]()
    assert message_bytes(name, fresh, History(history[:-1])) == sent[-1]
    assert encoder.watch.report.breaks == 0


@EACH
def test_cache_marks_are_all_that_moves(name: str) -> None:
    encoder, history, former = ENCODERS[name](), History(), []
    for number in range(10):
        for added in turn(number):
            history = history.extended(*added)
            if not isinstance(history[-1], AssistantMessage):
                told = items(name, json.loads(encoder.encode(ModelRequest(messages=history, session_id="s"))))
                assert told[: len(former)] == former
                former = told
