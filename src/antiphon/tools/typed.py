"""Arguments as Python values: checked by pydantic, from the JSON text, without coercion.

Loading this file loads pydantic, which takes its time: it is imported when the first tool with types is made.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, cast, get_args, get_origin

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from antiphon.errors import AntiphonError, UsageError
from antiphon.tools._booleans import confusable, confused
from antiphon.tools._json_schema import shown_schema
from antiphon.tools._typed_dict import modern
from antiphon.tools._walk import Node, Path
from antiphon.tools.arguments import ArgumentError, Arguments, Problem, quoted, unknown_name
from antiphon.tools.schema import canonical

__all__ = ["Parameter", "TypedArguments", "model_arguments", "named_arguments"]


class Parameter(Struct, frozen=True, kw_only=True):
    """A parameter that the model fills. `default` is `...` where there is none."""

    name: str
    annotation: Any
    default: Any = ...
    description: str | None = None


class TypedArguments(Arguments):
    """Arguments by Python types.

    Members that no type names are refused, in nested models, dataclasses and typed dicts too, unless a model among them
    says what to do with them itself (`extra="allow"` or `"ignore"`): then each decides for itself.
    """

    def __init__(self, name: str, adapter: "TypeAdapter[Any]") -> None:
        schema, closed = shown_schema(adapter.core_schema)
        if schema.get("type") != "object":
            raise UsageError(
                f"the arguments of tool {name!r} are {schema.get('type', 'anything')!r} in JSON, but they must be an "
                "object: give a model with fields"
            )
        super().__init__(canonical(schema))
        self._adapter = adapter
        self._closed = closed
        self._confusable = confusable(self.parameters)

    def check(self, given: dict[str, Any], text: str) -> tuple[Any, Sequence[Problem]]:
        problems: list[Problem] = []
        value: Any = None
        try:
            value = self._adapter.validate_json(text, strict=True, extra="forbid" if self._closed else None)
        except ValidationError as error:
            if error.errors(include_url=False)[0]["type"] == "json_invalid":  # it is JSON: only its depth can be wrong
                raise RecursionError(str(error)) from error
            problems.extend(told(error, given, self.parameters))
        except (AntiphonError, RecursionError):
            raise
        except Exception as error:
            raise ArgumentError(
                f"the arguments could not be checked: {type(error).__name__}: {error}; call again with others"
            ) from error
        if self._confusable:
            told_already = [problem.path for problem in problems]
            paths = dict.fromkeys(confused(self.parameters, given, self.parameters))
            problems += [
                Problem(path, f"is not one of those listed, got {quoted(at(given, path))}")
                for path in paths
                if path not in told_already
            ]
        return value, problems


class NamedArguments(TypedArguments):
    """Arguments of a function: the body gets a dict from the name of each parameter to its value."""

    def __init__(self, name: str, model: type[BaseModel], names: Mapping[str, str]) -> None:
        super().__init__(name, TypeAdapter(model))
        self._names = dict(names)

    def check(self, given: dict[str, Any], text: str) -> tuple[Any, Sequence[Problem]]:
        value, problems = super().check(given, text)
        if problems:
            return None, problems
        found = cast("dict[str, Any]", vars(value))
        return {name: found[field] for field, name in self._names.items()}, ()


def model_arguments(name: str, model: type) -> tuple[TypedArguments, str]:
    """Arguments that are one instance of a pydantic model, and what the model's docstring says."""
    try:
        arguments = TypedArguments(name, TypeAdapter(modern(model)))
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"the model of tool {name!r} has no JSON Schema: {first_line(error)}") from error
    return arguments, arguments.parameters.pop("description", "")  # the tool says it, once


def named_arguments(name: str, parameters: Sequence[Parameter]) -> TypedArguments:
    """Arguments of a function with these parameters. Raises `UsageError` that names the one that cannot be."""
    names = {f"p{place}": each.name for place, each in enumerate(parameters)}  # fields of a model may not have any name
    try:
        arguments = NamedArguments(name, modelled(parameters), names)
    except Exception as error:  # pydantic raises many kinds over a type, and says of each what is wrong
        raise UsageError(culprit(name, parameters, error)) from error
    if len(arguments.parameters["properties"]) < len(parameters):
        raise UsageError(f"two parameters of tool {name!r} have the same name for the model; change an alias")
    return arguments


def modelled(parameters: Sequence[Parameter]) -> type[BaseModel]:
    """A model with a field `p0`, `p1`, ... for each parameter."""
    fields: dict[str, Any] = {f"p{place}": (annotated(each), each.default) for place, each in enumerate(parameters)}
    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    return create_model("Arguments", __config__=config, **fields)


def annotated(parameter: Parameter) -> Any:
    """The annotation with name and description under what the user's own `Field` says."""
    field = Field(alias=parameter.name, description=parameter.description)
    annotation = modern(parameter.annotation)
    if get_origin(annotation) is not Annotated:
        return Annotated[annotation, field]
    kind, *own = get_args(annotation)
    return Annotated[(kind, field, *own)]


def culprit(name: str, parameters: Sequence[Parameter], error: Exception) -> str:
    """The sentence for types that pydantic refused: about the first parameter that is refused alone."""
    for parameter in parameters:
        try:
            shown_schema(TypeAdapter(modelled([parameter])).core_schema)
        except Exception as own:  # noqa: BLE001 - it is told, whatever it is
            return (
                f"parameter {parameter.name!r} of tool {name!r} has a type that a model cannot fill: {first_line(own)}; "
                "use types that JSON can carry, and reach other objects through 'ToolContext.deps' or a partial"
            )
    return f"the parameters of tool {name!r} have no JSON Schema together: {first_line(error)}"


def first_line(error: Exception) -> str:
    """What pydantic complains about, without its advice."""
    return str(error).partition("\n")[0].partition(". Set `")[0].rstrip(".")


def told(error: ValidationError, given: dict[str, Any], root: Node) -> Iterator[Problem]:
    """What pydantic found, as problems that a model can act on."""
    for each in error.errors(include_url=False, include_context=False):
        path, labels = located(each["loc"], given, missing=each["type"].startswith("missing"))
        label = f"(as {', '.join(labels)}) " if labels else ""
        match each["type"]:
            case kind if kind.startswith("missing"):
                text = "is missing"
            case "extra_forbidden" | "unexpected_keyword_argument":
                text = unknown_name(str(path[-1]), root, path[:-1])
            case _:
                text = f"{sentence(each['msg'])}, got {quoted(each['input'])}"
        yield Problem(path, label + text)


def sentence(message: str) -> str:
    """The sentence that pydantic says, without its subject, which the path names already."""
    for prefix in ("Value error, ", "Assertion failed, ", "Input "):
        message = message.removeprefix(prefix)
    return message if message[1:2].isupper() else message[:1].lower() + message[1:]


def located(loc: tuple[int | str, ...], given: Any, *, missing: bool) -> tuple[Path, list[str]]:
    """The path in the JSON, and the names of the alternatives that pydantic puts between its steps."""
    path: list[int | str] = []
    labels: list[str] = []
    here = given
    for place, step in enumerate(loc, 1):
        if isinstance(here, dict) and str(step) in here:
            path.append(str(step))
            here = cast("dict[str, Any]", here)[str(step)]
        elif isinstance(here, list) and isinstance(step, int) and step < len(cast("list[Any]", here)):
            path.append(step)
            here = cast("list[Any]", here)[step]
        elif missing and place == len(loc):
            path.append(step)
        else:
            labels.append("a name" if step == "[key]" else str(step))
    return tuple(path), labels


def at(given: Any, path: Path) -> Any:
    for step in path:
        given = given[step]
    return given
