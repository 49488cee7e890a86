"""What kind of callable a tool is made of: async or not, wanting the context or not."""

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar, get_args, get_origin

from antiphon.errors import UsageError
from antiphon.tools.context import ToolContext

__all__ = [
    "Body",
    "Handler",
    "adapted",
    "behind",
    "called",
    "is_async",
    "is_context",
    "parameters_of",
    "resolved_annotation",
]

Body: TypeAlias = Callable[[Any, ToolContext[Any]], Any]
"""Runs a tool with what its arguments became, and the context."""


ArgumentsT = TypeVar("ArgumentsT")

Handler: TypeAlias = Callable[[ArgumentsT], Any] | Callable[[ArgumentsT, ToolContext[Any]], Any] | Callable[[], Any]
"""A function of the arguments as one value, sync or async, and of the context if it wants it."""


def behind(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, method or object behind partials."""
    while isinstance(function, functools.partial | staticmethod):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    return function


def called(function: Callable[..., Any]) -> Any:
    """What runs when `function` is called: for an object, its `__call__`."""
    function = behind(function)
    return function if inspect.isroutine(function) else type(function).__call__


def is_async(function: Callable[..., Any], name: str) -> bool:
    """Whether calling `function` gives a coroutine. Raises `UsageError` for generators, which give no result."""
    plain = called(function)
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise UsageError(f"tool {name!r} is a generator; return a value, and report progress with ToolContext.progress")
    return inspect.iscoroutinefunction(plain)


def is_context(annotation: Any) -> bool:
    """Whether an annotation asks for the context: `ToolContext`, `ToolContext[Deps]`, or one of them or `None`."""
    if get_origin(annotation) is typing.Annotated:
        annotation = get_args(annotation)[0]
    origin = get_origin(annotation) or annotation
    if isinstance(origin, type):
        return issubclass(origin, ToolContext)
    return any(is_context(each) for each in get_args(annotation) if each is not type(None))


def parameters_of(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    """The parameters that are left to fill; those that a partial set by keyword are not."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"tool {name!r} has no signature that Python can read; wrap it in a function with typed parameters"
        ) from error
    settled: set[str] = set()
    while isinstance(function, functools.partial):
        settled |= function.keywords.keys()
        function = function.func
    return [parameter for parameter in found if parameter.name not in settled]


def resolved_annotation(function: Callable[..., Any], annotation: Any, names: Mapping[str, Any]) -> Any:
    """An annotation as a type, also when it is text. `names` are those of the scope that `function` was made in.

    Raises `NameError` for a name that does not exist when the program runs.
    """
    scope: dict[str, Any] = getattr(inspect.unwrap(called(function)), "__globals__", {})
    holder: Any = SimpleNamespace(__annotations__={"annotation": annotation})
    return typing.get_type_hints(holder, scope, dict(names), include_extras=True)["annotation"]


def adapted(handler: Callable[..., Any], name: str) -> Body:
    """A handler of the arguments, with or without the context, as a body.

    The context goes to the parameter annotated with `ToolContext`, else to the second one that must be given. A handler
    without parameters is called without any.
    """
    parameters = parameters_of(handler, name)
    context = next((each for each in parameters if _says_context(handler, each)), None)
    needed = [each for each in parameters if each is not context and _needed(each)]
    if context is None and len(needed) == 2:
        context = needed.pop()
    if len(needed) > 1 or any(each.kind is inspect.Parameter.KEYWORD_ONLY for each in needed):
        raise UsageError(
            f"the handler of tool {name!r} takes {', '.join([repr(each.name) for each in needed])}; "
            "it gets the arguments as one value, and the context if it asks for it: write `def handler(arguments, context)`"
        )
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    takes = any(each is not context and each.kind not in by_name for each in parameters)
    if context is None:
        return (lambda values, _: handler(values)) if takes else (lambda _, __: handler())
    if context.kind in by_name:
        word = context.name
        return lambda values, context: handler(*[values][:takes], **{word: context})
    if not takes:
        return lambda _, context: handler(context)
    return (lambda values, context: handler(context, values)) if parameters[0] is context else handler


def _needed(parameter: inspect.Parameter) -> bool:
    fixed = parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return fixed and parameter.default is inspect.Parameter.empty


def _says_context(handler: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        return False
    try:
        return is_context(resolved_annotation(handler, annotation, {}))
    except Exception:  # noqa: BLE001 - an annotation that cannot be resolved is text, and its text says enough
        return isinstance(annotation, str) and annotation.partition("[")[0].rpartition(".")[2] == "ToolContext"
