"""`@tool`: a function as a tool. The signature is the schema, the docstring says the rest."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from msgspec import Struct

from antiphon.errors import UsageError
from antiphon.tools.context import ToolContext
from antiphon.tools.handlers import behind, called, is_async, is_context, parameters_of, resolved_annotation
from antiphon.tools.tool import FunctionTool, ToolTraits, check_name

__all__ = ["tool"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **traits: Unpack[ToolTraits],
) -> FunctionTool[P, R]: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, **traits: Unpack[ToolTraits]
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **traits: Unpack[ToolTraits],
) -> Any:
    """Make a tool of a function, sync or async, with or without options: `@tool`, `@tool(timeout=5)`.

    Each parameter needs a type and becomes an argument; `Annotated[int, Field(ge=1, description="...")]` says more. The
    name is the function's, the description and those of the parameters are taken from its docstring (Google, NumPy or
    Sphinx style) unless given. A parameter annotated with `ToolContext` is given the context. Methods of an instance,
    partials and objects with `__call__` are functions too: `tool(shop.search)`.

    Raises `UsageError` for what no model could fill: parameters without a type or with one that JSON cannot carry,
    `*args`, `**kwargs`, generators, lambdas.
    """
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    names = caller.f_locals if caller else {}  # types may be defined in the function that makes the tool

    def make(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        return made(function, name, description, names, traits)

    return make if function is None else make(function)


def made(
    function: Callable[..., Any],
    name: str | None,
    description: str | None,
    names: Mapping[str, Any],
    traits: ToolTraits,
) -> FunctionTool[..., Any]:
    """The tool of `function`. `names` are those of the scope that it was made in."""
    from antiphon.tools.typed import Parameter, named_arguments

    if not callable(function) or isinstance(function, type):
        raise UsageError(f"{function!r} is no function; give @tool a function, a method, or an object with __call__")
    own_name = getattr(inspect.unwrap(behind(function)), "__name__", type(function).__name__)
    if own_name == "<lambda>":
        raise UsageError("a lambda has no types and cannot be a tool; write a function with `def`")
    name = check_name(own_name if name is None else name)
    slots = [slot_of(function, each, name, names) for each in parameters_of(function, name)]
    text, told = docs(function)
    arguments = named_arguments(
        name,
        [
            Parameter(name=each.name, annotation=each.annotation, default=each.default, description=told.get(each.name))
            for each in slots
            if not each.is_context
        ],
    )
    return FunctionTool(
        name=name,
        description=text if description is None else description,
        arguments=arguments,
        body=None if traits.get("external") else Filling(function, tuple(slots)),
        is_async=is_async(function, name),
        function=function,
        **traits,
    )


class Slot(Struct, frozen=True):
    """One parameter of a function, and where its value comes from."""

    name: str
    annotation: Any
    default: Any
    is_context: bool
    positional: bool


class Filling(Struct, frozen=True):
    """Calls a function with what its parameters are given."""

    function: Callable[..., Any]
    slots: tuple[Slot, ...]

    def __call__(self, values: Mapping[str, Any], context: ToolContext[Any]) -> Any:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for slot in self.slots:
            value = context if slot.is_context else values[slot.name]
            if slot.positional:
                positional.append(value)
            else:
                named[slot.name] = value
        return self.function(*positional, **named)


def slot_of(function: Callable[..., Any], parameter: inspect.Parameter, tool: str, names: Mapping[str, Any]) -> Slot:
    """A parameter as a slot, or the `UsageError` that says why it cannot be one."""
    name, kind = parameter.name, parameter.kind
    if kind is inspect.Parameter.VAR_POSITIONAL:
        raise UsageError(f"tool {tool!r} takes *{name}, which has no schema; take a list instead: `{name}: list[str]`")
    if kind is inspect.Parameter.VAR_KEYWORD:
        raise UsageError(
            f"tool {tool!r} takes **{name}, which has no schema; take a dict instead: `{name}: dict[str, str]`"
        )
    if parameter.annotation is inspect.Parameter.empty:
        if name in ("self", "cls"):
            raise UsageError(
                f"tool {tool!r} is a method without its object; make the tool of a bound one: `tool(x.{tool})`"
            )
        raise UsageError(f"parameter {name!r} of tool {tool!r} has no type; write one, for example `{name}: str`")
    try:
        annotation = resolved_annotation(function, parameter.annotation, names)
    except Exception as error:
        raise UsageError(
            f"the type of parameter {name!r} of tool {tool!r} is not known when the program runs: {error}; "
            "import it outside of TYPE_CHECKING, or define it before the tool"
        ) from error
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return Slot(name, annotation, default, is_context(annotation), kind is inspect.Parameter.POSITIONAL_ONLY)


def docs(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What the docstring says of the tool, and of its parameters by name."""
    text = inspect.getdoc(called(function)) or ""
    if not inspect.isroutine(behind(function)) and not called(function).__doc__:
        text = inspect.getdoc(type(behind(function))) or ""
    if not text:
        return "", {}
    import docstring_parser

    try:
        found = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return text, {}
    parts = [part for part in (found.short_description, found.long_description) if part]
    told = {each.arg_name: " ".join((each.description or "").split()) for each in found.params}
    return "\n\n".join(parts), {name: description for name, description in told.items() if description}
