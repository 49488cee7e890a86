"""A tool: what a model may call, what that does, and how it wants to be treated."""

import functools
import math
import re
from collections.abc import Callable
from typing import Any, Final, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack

from msgspec import Struct

from antiphon.errors import UsageError
from antiphon.tools.arguments import Arguments, Prepared
from antiphon.tools.context import ToolContext
from antiphon.tools.handlers import Body, Handler, adapted, is_async
from antiphon.tools.hooks import Approval, CallInfo, NeedsApproval, ToolHooks
from antiphon.types.request import ToolSpec

__all__ = ["FunctionTool", "Tool", "ToolTraits"]

P = ParamSpec("P")
R = TypeVar("R")
ModelT = TypeVar("ModelT")

RESERVED: Final = frozenset({"auto", "none", "required"})
"""Words that a tool choice understands by itself."""

USABLE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
"""What at least one vendor takes for a name; Gemini has dots and colons, Anthropic 128 characters, OpenAI 64 without."""


class ToolTraits(TypedDict, total=False):
    """What a tool may say of itself besides its name, its description and its arguments. See `Tool`."""

    label: str | None
    timeout: float | None
    exclusive: bool
    repeatable: bool
    external: bool
    needs_approval: NeedsApproval
    on_error: Literal["tell", "raise"] | None
    max_turns: int | None
    max_calls: int | None
    instructions: str | None
    strict: bool | None
    hooks: ToolHooks[Any] | None
    kind: Literal["read", "write", "exec"] | None


class Tool(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """What a model may call.

    Make one with `@tool` from a function, `Tool.from_model` from a pydantic model, or `Tool.from_schema` from a JSON
    Schema; change one with `msgspec.structs.replace`.

    `name` and `description` are for the model, `label` is for people. `timeout` is in seconds; `None` takes the
    engine's, 0 and infinity mean none. An `exclusive` tool runs alone, a `repeatable` one may run again when it is not
    known how far it came, an `external` one has no body: its result is given by the application. `on_error` says
    whether what the body raises is told to the model or ends the run (`None`: as the run says). `max_turns` and
    `max_calls` limit it within a run. `instructions` are added to the system prompt while the tool is offered. `strict`
    asks the provider to hold the model to the schema. `kind` is the class of what it does, for approval policies.

    A name has 1 to 128 letters, digits, `_`, `-`, `.` or `:`, because no vendor takes others. Some take less: for every
    vendor, keep to 64 characters without `.` and `:`.
    """

    name: str
    description: str = ""
    arguments: Arguments
    body: Body | None
    is_async: bool = True
    label: str | None = None
    timeout: float | None = None
    exclusive: bool = False
    repeatable: bool = False
    external: bool = False
    needs_approval: NeedsApproval = False
    on_error: Literal["tell", "raise"] | None = None
    max_turns: int | None = None
    max_calls: int | None = None
    instructions: str | None = None
    strict: bool | None = None
    hooks: ToolHooks[Any] | None = None
    kind: Literal["read", "write", "exec"] | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.body is None and not self.external:
            raise UsageError(f"tool {self.name!r} has nothing to run; give it a function, or say external=True")
        if self.timeout is not None and (math.isnan(self.timeout) or self.timeout < 0):
            raise UsageError(f"tool {self.name!r} has timeout={self.timeout!r}; give seconds, or 0 for no limit")
        for limit in ("max_turns", "max_calls"):
            if (most := getattr(self, limit)) is not None and most < 0:
                raise UsageError(f"tool {self.name!r} has {limit}={most!r}; give a number from 0 up, or None")
        if callable(self.needs_approval) and is_async(self.needs_approval, self.name):
            raise UsageError(
                f"needs_approval of tool {self.name!r} is async, but it may not wait; answer at once, "
                "and leave waiting to the approver"
            )

    @classmethod
    def from_model(
        cls,
        model: type[ModelT],
        handler: Handler[ModelT],
        *,
        name: str | None = None,
        description: str | None = None,
        **traits: Unpack[ToolTraits],
    ) -> "Tool":
        """A tool whose arguments are one validated instance of a pydantic model.

        The name is the handler's, the description the model's docstring, unless given. A second parameter of the
        handler, or one annotated with `ToolContext`, is given the context.
        """
        from antiphon.tools.typed import model_arguments

        named = check_name(getattr(handler, "__name__", type(handler).__name__) if name is None else name)
        arguments, said = model_arguments(named, model)
        return cls(
            name=named,
            description=said if description is None else description,
            arguments=arguments,
            body=adapted(handler, named),
            is_async=is_async(handler, named),
            **traits,
        )

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        parameters: dict[str, Any],
        handler: Handler[dict[str, Any]] | None = None,
        **traits: Unpack[ToolTraits],
    ) -> "Tool":
        """A tool whose arguments are described by a JSON Schema; the handler gets them as a dict.

        A second parameter of the handler, or one annotated with `ToolContext`, is given the context. Without a handler
        the tool is `external`. Raises `UsageError` for a schema that is not valid or refers to another document.
        """
        from antiphon.tools.schema import SchemaArguments

        check_name(name)
        traits["external"] = traits.get("external", False) or handler is None
        return cls(
            name=name,
            description=description,
            arguments=SchemaArguments(name, parameters),
            body=None if handler is None else adapted(handler, name),
            is_async=handler is None or is_async(handler, name),
            **traits,
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, always with the same bytes. Not to be changed."""
        return self.arguments.parameters

    def spec(self) -> ToolSpec:
        """What a request says of this tool, always the same object."""
        return self._spec

    @functools.cached_property
    def _spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters=self.parameters,
            strict=self.strict,
            instructions=self.instructions,
        )

    def prepare(self, text: str) -> Prepared:
        """The arguments that a model wrote, filled and checked. Raises `ArgumentError`, whose text is for the model."""
        return self.arguments.prepare(text, strict=bool(self.strict))

    def prepare_object(self, given: dict[str, Any]) -> Prepared:
        """The arguments that a hook or a person gave instead, filled and checked in the same way."""
        return self.arguments.prepare_object(given)

    def verdict(self, call_id: str, arguments: dict[str, Any]) -> Approval:
        """What the tool itself says of a call: run it, ask somebody first, or refuse it."""
        answer: Any = self.needs_approval
        if callable(answer):
            answer = answer(CallInfo(call_id, self.name, arguments))
        match answer:
            case False | "run":
                return "run"
            case True | "ask":
                return "ask"
            case "deny":
                return "deny"
            case _:
                raise UsageError(
                    f"needs_approval of tool {self.name!r} answered {answer!r}; answer a boolean, 'run', 'ask' or 'deny'"
                )

    def invoke(self, prepared: Prepared, context: ToolContext[Any]) -> Any:
        """Run the body.

        With `is_async` this gives an awaitable at once. Else the body runs here, in the caller's thread, and its value
        is returned; should that be an awaitable (a function that hands on a coroutine), it wants to be awaited.
        """
        if self.body is None or self.external:
            raise UsageError(f"tool {self.name!r} is external and has nothing to run; give its result as an Answer")
        return self.body(prepared.values, context)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class FunctionTool(Tool, Generic[P, R], frozen=True, kw_only=True, eq=False, dict=True):
    """A tool made of a function by `@tool`. Calling it calls the function, without any of the checks."""

    function: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the plain function."""
        return self.function(*args, **kwargs)


def check_name(name: Any) -> str:
    """`name`, if some model can call a tool by it; else a `UsageError`."""
    if not isinstance(name, str) or USABLE.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} is no name for a tool; give name= with 1 to 128 letters, digits, '_', '-', '.' or ':'"
        )
    if name in RESERVED:
        raise UsageError(f"{name!r} means something else as a tool choice; give the tool another name")
    return name
