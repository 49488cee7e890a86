"""The declared hooks of a scenario as hooks of ours, each call of one recorded with what it was shown."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from antiphon import Block, CustomMessage, Hooks, Message, UseArguments, UseContext, UseRequest, UseResult
from antiphon.types.messages import UserMessage

from .projection import Projection
from .stage import Boom, Stage
from .words import Json, messages_in, part_in, parts_out, role_of, roles_of

__all__ = ["HookMaker"]

MakeModel = Callable[[Json], Any]

OURS = {
    "beforeToolCall": ("before_tool_execute", "_before_tool"),
    "afterToolCall": ("after_tool_execute", "_after_tool"),
    "beforeLlmCall": ("prepare_context", "_prepare"),
    "transformContext": ("before_model_request", "_transform"),
    "shouldContinue": ("should_continue", "_should_continue"),
}
"""Their hooks: ours, and who plays it."""


class HookMaker:
    """Makes the hooks that a scenario declares by their names for them."""

    def __init__(self, stage: Stage, declared: Json, make_model: MakeModel) -> None:
        self._stage = stage
        self._declared = declared
        self._make_model = make_model
        self._counts: dict[str, int] = {}
        self.projection: Projection | None = None
        self.messages: Callable[[], Sequence[Message]] = tuple
        """The run's transcript of the moment."""

    def hooks(self) -> Hooks[Any]:
        made: dict[str, Any] = {"on_warning": self._warned}
        for theirs, (name, method) in OURS.items():
            if theirs in self._declared:
                made[name] = self._watched(getattr(self, method))
        return Hooks(**made)

    def set(self, setter: str, value: Any) -> Hooks[Any] | None:
        """The hooks after a setter of one of them, `None` for a setter of something else."""
        first, *more = setter.removeprefix("set_").split("_")
        name = first + "".join([word.capitalize() for word in more])
        if name not in OURS:
            return None
        other = HookMaker(self._stage, {**self._declared, name: value}, self._make_model)
        if value is None:
            del other._declared[name]
        other.projection, other.messages = self.projection, self.messages
        return other.hooks()

    def to_model(self) -> Any:
        return self._watched(self._convert) if "convertToLlm" in self._declared else None

    def api_key(self, fallback: str | None) -> Any:
        return self._key(fallback) if "getApiKey" in self._declared else fallback

    def _watched(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any) -> Any:
            with self._stage.watched():
                return hook(*given)

        return called

    # Around tools

    def _before_tool(self, context: Any) -> Any:
        self._stage.note(
            hook="beforeToolCall", id=context.call.id, args=context.arguments, **self._roles(self.messages())
        )
        action = self._action("beforeToolCall", context.call.id)
        if "raises" in action:
            raise Boom(action["raises"])
        if (action.get("returns") or {}).get("block"):
            return Block(action["returns"].get("reason") or None)
        return UseArguments({**context.arguments, **action["set_args"]}) if "set_args" in action else None

    def _after_tool(self, context: Any) -> Any:
        result = context.result
        self._stage.note(
            hook="afterToolCall",
            id=context.call.id,
            args=context.arguments,
            result={"content": parts_out(result.parts), "details": result.details},
            isError=result.is_error,
            context_roles=roles_of(self.messages()),
        )
        action = self._action("afterToolCall", context.call.id)
        if "raises" in action:
            raise Boom(action["raises"])
        return changed_result(action.get("returns"))

    def _action(self, hook: str, call_id: str) -> Json:
        declared = self._declared[hook]
        return (declared.get("by_call_id") or {}).get(call_id) or declared.get("always") or {}

    # Around requests

    def _prepare(self, context: Any) -> Any:
        number = self._count("beforeLlmCall")
        tools = [tool.name for tool in context.tools]
        self._stage.note(hook="beforeLlmCall", n=number, **self._roles(context.messages), tools=tools)
        actions = self._declared["beforeLlmCall"]
        action = actions[number - 1] if number <= len(actions) else {}
        if "raises" in action:
            raise Boom(action["raises"])
        if action.get("mutate_snapshot"):
            with contextlib.suppress(AttributeError, TypeError):  # there is nothing that could be changed
                context.messages.clear()
        if "messages" not in action and "model" not in action:
            return None
        messages = messages_in(action["messages"]) if "messages" in action else None
        return UseContext(messages=messages, model=self._make_model(action["model"]) if "model" in action else None)

    def _transform(self, context: Any) -> Any:
        self._stage.note(hook="transformContext", roles=roles_of(context.messages))
        action = self._declared["transformContext"]
        if "raises" in action:
            raise Boom(action["raises"])
        if action.get("drop_first_in_place"):
            with contextlib.suppress(TypeError):  # there is nothing that could be changed
                del context.messages[0]
        if "keep_last" not in action and "append" not in action:
            return None
        kept = list(context.messages)
        kept = kept[len(kept) - min(len(kept), action.get("keep_last", len(kept))) :]
        return UseRequest(messages=kept + messages_in([action["append"]] if "append" in action else []))

    def _convert(self, messages: Sequence[Message], _cancel: Any) -> list[Message]:
        action, number = self._declared["convertToLlm"], self._count("convertToLlm")
        self._stage.note(hook="convertToLlm", roles=roles_of(messages))
        if "raises" in action and action.get("raises_on_call", number) == number:
            raise Boom(action["raises"])
        converted: list[Message] = []
        for message in messages:
            role = role_of(message)
            if role in action.get("drop_roles", ()):
                continue
            if isinstance(message, CustomMessage) and role == action.get("to_user"):
                converted.append(UserMessage.of(str(message.data.get("text", ""))))
            elif not isinstance(message, CustomMessage):
                converted.append(message)
        return converted

    def _should_continue(self, _context: Any) -> bool:
        values, number = self._declared["shouldContinue"], self._count("shouldContinue")
        value = values[min(number, len(values)) - 1]
        self._stage.note(hook="shouldContinue", returns=value)
        return value

    def _key(self, fallback: str | None) -> Any:
        def get_api_key(provider: str) -> str | None:
            values, number = self._declared["getApiKey"], self._count("getApiKey")
            value = values[number - 1] if number <= len(values) else None
            self._stage.note(hook="getApiKey", provider=provider, returns=value)
            return value or fallback

        return get_api_key

    def _warned(self, code: str, text: str) -> None:
        if code != "listener_raised":
            self._stage.note(warning=[code, text])

    def _count(self, hook: str) -> int:
        self._counts[hook] = self._counts.get(hook, 0) + 1
        return self._counts[hook]

    def _roles(self, messages: Sequence[Message]) -> Json:
        roles = {"context_roles": roles_of(messages)}
        if self.projection is not None:
            roles["state_roles"] = roles_of(self.projection.view.messages)
        return roles


def changed_result(returned: Json | None) -> UseResult | None:
    """What an after hook answers; of theirs an absent or null field keeps what there is."""
    given = {name: value for name, value in (returned or {}).items() if value is not None}
    if not given:
        return None
    changes: Json = {}
    if "content" in given:
        changes["content"] = [part_in(block) for block in given["content"]] or ""
    if "details" in given:
        changes["details"] = given["details"]
    if "isError" in given:
        changes["is_error"] = given["isError"]
    return UseResult(**changes)
