"""Asking: what happens between one turn and the next, in this order, until the reply is in the transcript."""

import operator
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from msgspec.structs import replace

from antiphon.errors import UsageError
from antiphon.loop._steps import due
from antiphon.loop.hooks import (
    ModelContext,
    ReplyContext,
    RoundContext,
    Stop,
    UseContext,
    UseReply,
    UseRequest,
    answer_of,
)
from antiphon.loop.limits import exceeded
from antiphon.loop.outgoing import outgoing
from antiphon.loop.recover import ask_until_answered
from antiphon.loop.session import HaltRun, Session, stopped
from antiphon.loop.sources import Sources
from antiphon.loop.state import Cut, Declined, Failed, Queued, Replaced, Replied, Taken
from antiphon.loop.toolset import by_name, unknown_tool
from antiphon.types.content import ToolCall
from antiphon.types.events import ContextReplaced, LimitReached, MessageDelivered, TurnFinished, TurnStarted
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage
from antiphon.types.request import ModelRequest, ModelSettings
from antiphon.types.transcript import validate

__all__ = ["ask", "close_turn"]


async def ask(session: Session, sources: Sources) -> None:
    """One turn's request and reply."""
    close_turn(session)
    check_run_limits(session)
    await sources.refresh()
    session.turn_tools = session.tools
    if (session.rounds or session.resumed_round) and not await wants_more(session):
        session.declined = True
        session.feed(Declined())
        return
    delivered = deliver(session)
    if not delivered and session.state.ending != "no":  # what was queued has been taken back meanwhile
        session.feed(Declined())
        return
    try:
        request = await next_request(session)
    finally:  # also when no request can be made: the messages are in the transcript now
        for message_id, queue in delivered:
            session.teller.tell(MessageDelivered, message_id=message_id, queue=queue)
    session.open_message = session.mint_message_id()
    outcome = await ask_until_answered(session, request)
    session.rounds += 1
    await take_reply(session, request, outcome)


async def next_request(session: Session) -> ModelRequest:
    """The turn begins: what it sends."""
    await session.publish()
    await prepare_context(session)
    session.check()
    session.open_turn, session.turn_began = session.state.counters.turns + 1, len(session.state.messages)
    session.teller.tell(TurnStarted, turn=session.open_turn)
    await session.settle()
    return await build_request(session)


def check_run_limits(session: Session) -> None:
    reached = exceeded(session.spec.limits, session.state.counters, session.seconds)
    if reached is not None:
        session.teller.tell(LimitReached, scope="run", which=reached.which, limit=reached.limit)
        raise HaltRun("limit", f"the limit of {reached.limit:g} {reached.which} was reached")


async def wants_more(session: Session) -> bool:
    for hook in session.deciding("should_continue"):
        context = RoundContext(
            **session.common(),
            step=session.state.counters.turns,
            limit=session.spec.limits.turns,
            messages=session.state.messages,
            results=round_results(session.state.messages),
        )
        if await answer_of(hook, context, "should_continue", bool) is False:
            return False
    return True


def round_results(messages: Sequence[Message]) -> tuple[ToolResultMessage, ...]:
    """The results at the end of the transcript."""
    results: list[ToolResultMessage] = []
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if not isinstance(message, ToolResultMessage):
            break
        results.append(message)
    return tuple(reversed(results))


def deliver(session: Session) -> list[tuple[str, Any]]:
    """Queued messages join the transcript now, the last moment before a request; receipts come when it is made."""
    state = session.state
    taken: Taken = due(state)
    if not taken.steering and not taken.follow_ups:
        return []
    steering, follow_ups = state.steering[: taken.steering], state.follow_ups[: taken.follow_ups]
    session.feed(taken)
    ids = [(getattr(message, "id", ""), "steering") for message in steering]
    return ids + [(getattr(message, "id", ""), "follow_up") for message in follow_ups]


def model_context(session: Session, messages: Sequence[Message], settings: ModelSettings) -> dict[str, Any]:
    return session.common() | {
        "step": session.state.counters.turns + 1,
        "limit": session.spec.limits.turns,
        "messages": messages,
        "tools": tuple(session.turn_tools.values()),
        "settings": own_settings(settings),
    }


def own_settings(settings: ModelSettings) -> ModelSettings:
    """The settings for a hook, which may change the dicts in them without changing those of other runs."""
    dicts: dict[str, Any] = {}
    for name in settings.__struct_fields__:
        value: Any = getattr(settings, name)
        if isinstance(value, dict):
            dicts[name] = deepcopy(value)  # pyright: ignore[reportUnknownArgumentType] - whatever is in it
    return replace(settings, **dicts) if dicts else settings


async def prepare_context(session: Session) -> None:
    """The application may put other messages or another model in place: both at once, or neither when it fails."""
    hooks = session.hooks.at("prepare_context")
    if not hooks:
        return
    messages: Sequence[Message] = session.state.messages
    model = session.model
    for hook in hooks:
        context = ModelContext(**model_context(session, tuple(messages), session.spec.settings))
        change = await answer_of(hook, context, "prepare_context", UseContext)
        if change is not None:
            messages = messages if change.messages is None else tuple(change.messages)
            model = change.model or model
    replaced = not is_same(messages, session.state.messages)
    if not replaced and model is session.model:
        return
    if replaced:
        check_replacement(messages)
    given = tuple([session.stamp(message) for message in messages]) if replaced else None
    info = getattr(model, "info", None) if model is not session.model else None
    session.model = model
    session.feed(Replaced(messages=given, model=info, at=session.now()))
    session.told = len(session.state.messages)
    session.teller.tell(ContextReplaced, messages=given, model=info, why="prepare_context")
    await session.settle()


def is_same(messages: Sequence[Message], others: Sequence[Message]) -> bool:
    """A list with nothing new in it replaces nothing."""
    return len(messages) == len(others) and all(map(operator.is_, messages, others))


def check_replacement(messages: Sequence[Message]) -> None:
    problems = validate(messages)
    if problems:
        raise UsageError(f"prepare_context gave messages that cannot be sent: {problems[0].index}: {problems[0].text}")


async def build_request(session: Session) -> ModelRequest:
    """Ask `before_model_request`, convert, check: nothing is sent that a provider would refuse."""
    messages: Sequence[Message] = session.state.messages
    settings = session.spec.settings
    changed = False
    for hook in session.deciding("before_model_request"):
        context = ModelContext(**model_context(session, messages, settings))
        change = await answer_of(hook, context, "before_model_request", UseRequest, Stop)
        if isinstance(change, Stop):
            raise stopped(change, "before_model_request")
        if change is not None:
            changed = changed or change.messages is not None
            messages = messages if change.messages is None else tuple(change.messages)
            settings = settings.merged(change.settings)
            if change.tools is not None:
                session.turn_tools = by_name(change.tools, "before_model_request")
    check = changed or not session.rounds  # the transcript came from elsewhere; what the run adds to it is sound
    sent = await outgoing(messages, session.spec.to_model, session.cancel, check=check)
    choice = session.choice = tool_choice(session)
    specs = () if choice == "none" else tuple([tool.spec() for tool in session.turn_tools.values()])
    return ModelRequest(
        messages=sent,
        instructions=session.instructions(specs),
        tools=specs,
        tool_choice=choice if specs else "auto",
        settings=settings,
        session_id=session.spec.session_id,
        meta=session.spec.meta,
        cancel=session.cancel,
        on_payload=session.payload_hook(),
    )


def tool_choice(session: Session) -> str:
    """`none` holds for the whole run; `required` and a name hold for its first request, `auto` follows."""
    choice = session.spec.tool_choice
    if choice == "none":
        return choice
    if session.rounds:
        return "auto"
    if choice not in ("auto", "required") and choice not in session.turn_tools:
        raise UsageError(f"tool_choice={choice!r}: {unknown_tool(choice, session.turn_tools)}")
    return choice


async def take_reply(session: Session, request: ModelRequest, outcome: AssistantMessage | Cut | Failed) -> None:
    """The reply joins the transcript, is announced, and only then its calls run."""
    match outcome:
        case AssistantMessage():
            session.reply = outcome
            message = await after_response(session, request, outcome)
            session.joiner = session.reply = None
            remind(session, message)
            session.feed(Replied(message=message))
        case _:
            session.joiner = None
            session.feed(outcome)
    await session.publish()


def remind(session: Session, message: AssistantMessage) -> None:
    """A run with a typed answer does not end without it: the model is told to give it, a bounded number of times."""
    output, state = session.spec.output, session.state
    if output is None or message.calls or state.steering or state.follow_ups or output.accepts(message):
        return
    if session.reminded >= output.reminders:
        session.reply = message
        raise HaltRun("error", f"the model gave no final answer, and was reminded {session.reminded} times")
    session.reminded += 1
    session.feed(Queued(message=session.stamp(output.reminder(message)), queue="steering"))


async def after_response(session: Session, request: ModelRequest, message: AssistantMessage) -> AssistantMessage:
    for hook in session.deciding("after_model_response"):
        context = ReplyContext(**model_context(session, request.messages, request.settings), message=message)
        change = await answer_of(hook, context, "after_model_response", UseReply, Stop)
        if isinstance(change, Stop):
            raise stopped(change, "after_model_response")
        if change is not None:
            message = changed_reply(message, change)
            session.reply = message
    return message


def changed_reply(message: AssistantMessage, change: UseReply) -> AssistantMessage:
    if change.message is not None:
        if not isinstance(change.message, AssistantMessage):  # pyright: ignore[reportUnnecessaryIsInstance] - not every caller is typed
            raise UsageError(
                f"after_model_response gave {type(change.message).__name__} for the reply; give an AssistantMessage"
            )
        message = replace(change.message, id=message.id, created_at=message.created_at, usage=message.usage)
    if change.calls is not None:
        spoken = tuple([part for part in message.parts if not isinstance(part, ToolCall)])
        message = replace(message, parts=(*spoken, *change.calls))
    ids = [call.id for call in message.calls]
    if "" in ids or len(set(ids)) != len(ids):
        raise UsageError(f"after_model_response gave calls with empty or repeated ids: {ids!r}; give each its own")
    return message


def close_turn(session: Session) -> None:
    """Tell the end of the turn that is open, with its reply and results."""
    if not session.open_turn:
        return
    turn, session.open_turn = session.open_turn, 0
    messages = session.state.messages
    results = round_results(messages)
    index = len(messages) - len(results) - 1
    reply = messages[index] if index >= 0 else None
    message = reply if isinstance(reply, AssistantMessage) and index >= session.turn_began else None
    session.teller.tell(TurnFinished, turn=turn, message=message, results=results if message else ())
