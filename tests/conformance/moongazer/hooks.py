"""The declared hook actions of a scenario as hooks of ours, each call of one recorded with what its context held."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from antiphon import Hooks, Stop, Text, ToolHooks, UseArguments, UseReply, UseRequest, UseResult, UseTools

from .projection import call_from, calls_of, message_of, messages_from, roles_of, status_of
from .stage import Stage, raised, root_text, wait_ms

__all__ = ["Hook", "HookMaker"]

Hook = Callable[[Any], Awaitable[Any]]
MakeTool = Callable[[dict[str, Any]], Any]


class HookMaker:
    """Makes the hooks of one level (`agent`, `run`, `child`, or `tool:NAME`)."""

    def __init__(self, stage: Stage, label: str, make_tool: MakeTool, turns: Callable[[], int] = int) -> None:
        self._stage = stage
        self._label = label
        self._make_tool = make_tool
        self._turns = turns

    def hooks(self, declared: dict[str, Any], **more: Hook) -> Hooks:
        """The hooks of an agent or a run. `more` are called before the declared ones of the same name."""
        made: dict[str, Any] = {name: self.hook(name, action) for name, action in declared.items()}
        for name, first in more.items():
            made[name] = both(first, made[name]) if name in made else first
        return Hooks(**made)

    def tool_hooks(self, declared: dict[str, Any]) -> ToolHooks[Any]:
        return ToolHooks(**{name: self.hook(name, action) for name, action in declared.items()})

    def hook(self, name: str, declared: Any) -> Hook:
        actions: list[dict[str, Any]] = declared if isinstance(declared, list) else [declared]

        async def called(context: Any) -> Any:
            self._stage.note("hook", hook=f"{self._label}.{name}", context=self._seen(name, context))
            for action in actions:
                if applies(action, context):
                    return await self._act(name, action, context)
            return None

        return called

    def _seen(self, name: str, context: Any) -> dict[str, Any]:
        seen = SEEN[name](context) | {"signal_aborted": context.cancel.cancelled}
        return seen | {"steps": self._turns()} if name == "on_run_end" else seen

    async def _act(self, name: str, action: dict[str, Any], context: Any) -> Any:
        if "delay_ms" in action:
            await wait_ms(action["delay_ms"])
        if action.get("calls_stop"):
            self._stage.stop()
        if (error := raised(action)) is not None:
            raise error
        for word, answer in ANSWERS.items():
            if word in action:
                return answer(action[word], context)
        if "add_tool" in action:
            return use_tools(name, [*context.tools, self._make_tool(action["add_tool"])])
        if "keep_tools" in action:
            return use_tools(name, [tool for tool in context.tools if tool.name in action["keep_tools"]])
        if "duplicate_tools" in action:
            return use_tools(name, [*context.tools, *context.tools])
        return self._literal(name, action["returns"]) if "returns" in action else None

    def _literal(self, name: str, value: Any) -> Any:
        """A literal answer of theirs in our words; what has none is returned as it stands."""
        if not isinstance(value, dict):
            return value
        if name == "should_continue":
            return literal_verdict(value)
        if value.get("stop") is True:
            return Stop(value.get("reason"))
        tools = [self._make_tool(tool) for tool in value["tools"]] if value.get("tools") is not None else None
        match name:
            case "before_model_request":
                messages = messages_from(value["messages"]) if "messages" in value else None
                return UseRequest(messages=messages, tools=tools)
            case "after_tools_resolved":
                return UseTools(tools) if tools is not None else None
            case "after_model_response":
                return literal_reply(value)
            case "before_tool_execute" | "after_tool_execute" | "before_execute" | "after_execute":
                return literal_result(value)
            case _:
                return value


def both(first: Hook, second: Hook) -> Hook:
    async def called(context: Any) -> Any:
        await first(context)
        return await second(context)

    return called


def applies(action: dict[str, Any], context: Any) -> bool:
    if "only_step" in action and context.step != action["only_step"]:
        return False
    return "only_call" not in action or context.call.id == action["only_call"]


# What each hook was shown


def seen_in_run(context: Any) -> dict[str, Any]:
    return {"message_roles": roles_of(context.messages)}


def seen_at_end(context: Any) -> dict[str, Any]:
    seen = seen_in_run(context) | {"status": status_of(context.status)}
    return seen | {"error": root_text(context.error)} if context.error is not None else seen


def seen_of_tools(context: Any) -> dict[str, Any]:
    why = {"initial": "initial", "refresh": "invalidated"}[context.why]
    return {"reason": why, "source": context.source.name if context.source is not None else None}


def seen_resolved(context: Any) -> dict[str, Any]:
    return seen_of_tools(context) | {"tools": [tool.name for tool in context.tools]}


def seen_of_request(context: Any) -> dict[str, Any]:
    seen = {"step": context.step, "max_steps": context.limit, "tools": [tool.name for tool in context.tools]}
    return seen | seen_in_run(context)


def seen_of_reply(context: Any) -> dict[str, Any]:
    message = context.message
    seen = {"step": context.step, "message": message_of(message), "tool_calls": calls_of(message.calls)}
    return seen | {"finish_reason": message.stop_reason}


def seen_of_round(context: Any) -> dict[str, Any]:
    results = [result.text for result in context.results]
    return {"step": context.step, "max_steps": context.limit, "last_tool_results": results} | seen_in_run(context)


def seen_by_tool(context: Any) -> dict[str, Any]:
    return {"call_id": context.call.id, "args": context.arguments}


def seen_of_call(context: Any) -> dict[str, Any]:
    name = context.tool.name if context.tool is not None else None
    return seen_by_tool(context) | {"step": context.step, "tool": name}


def outcome(context: Any) -> dict[str, Any]:
    error = root_text(context.error)
    return {"result": context.result.text, "error": error, "short_circuited": context.short_circuited}


SEEN: dict[str, Callable[[Any], dict[str, Any]]] = {
    "on_run_start": seen_in_run,
    "on_run_end": seen_at_end,
    "before_tools_resolved": seen_of_tools,
    "after_tools_resolved": seen_resolved,
    "before_model_request": seen_of_request,
    "after_model_response": seen_of_reply,
    "should_continue": seen_of_round,
    "before_tool_execute": seen_of_call,
    "after_tool_execute": lambda context: seen_of_call(context) | outcome(context),
    "before_execute": seen_by_tool,
    "after_execute": lambda context: seen_by_tool(context) | outcome(context),
}


# What each hook answers


def use_tools(name: str, tools: list[Any]) -> Any:
    return UseTools(tools) if name == "after_tools_resolved" else UseRequest(tools=tools)


ANSWERS: dict[str, Callable[[Any, Any], Any]] = {
    "merge_args": lambda given, context: UseArguments({**context.arguments, **given}),
    "append_messages": lambda given, context: UseRequest(messages=[*context.messages, *messages_from(given)]),
    "rewrite_content": lambda text, context: UseReply(message=rewritten(context.message, text)),
    "append_to_result": lambda text, context: UseResult(context.result.text + text),
}


def rewritten(message: Any, text: str) -> Any:
    others = [part for part in message.parts if not isinstance(part, Text)]
    return replace(message, parts=(Text(text), *others))


def literal_verdict(value: dict[str, Any]) -> Any:
    if isinstance(value.get("continue"), bool):
        return value["continue"]
    return Stop(value.get("reason")) if value.get("stop") is True else None


def literal_reply(value: dict[str, Any]) -> UseReply | None:
    message: Any = messages_from([value["message"]])[0] if value.get("message") is not None else None
    calls = [call_from(call) for call in value["toolCalls"]] if value.get("toolCalls") is not None else None
    return UseReply(message=message, calls=calls) if message is not None or calls is not None else None


def literal_result(value: dict[str, Any]) -> Any:
    """A result beats arguments in the same answer."""
    if "result" in value:
        return UseResult(value["result"])
    return UseArguments(value["args"]) if "args" in value else None
