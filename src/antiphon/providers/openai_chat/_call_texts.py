"""How models write calls into text when their server does not read them: one small parser for each way. Pure."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from antiphon.providers.lenient import object_in, objects_in, raw_text_in
from antiphon.types.request import ToolSpec

__all__ = ["WAYS", "Broken", "Found", "Tools", "Way", "WrittenCall"]

Tools: TypeAlias = Mapping[str, ToolSpec]
"""The tools that were offered, by name."""


class WrittenCall(Struct, frozen=True):
    """A call as it was written: its name and its arguments as JSON text."""

    name: str
    arguments: str


class Broken(Struct, frozen=True):
    """What was to be a call and is none: the name as far as it can be read, and the text."""

    name: str | None
    text: str


Found: TypeAlias = list[WrittenCall] | Broken | None
"""`None`: the text is no call."""


class Way(Struct, frozen=True):
    """One way of writing. `openings`: how a text of this way begins. `read` gets the whole text, without space around."""

    openings: tuple[str, ...]
    read: Callable[[str, Tools], Found]


_NAME = re.compile(r'"name"\s*:\s*"([^"\\]+)"|<function=([^>\s]+)>')
_FENCED = re.compile(r"```(?:json|tool_call|tool_code)?\s*\n(.*)\n?```", re.DOTALL)
_TAGGED = re.compile(r"<tool_call>(.*?)</tool_call>\s*", re.DOTALL)
_FUNCTION = re.compile(r"\s*<function=([^>\s]+)>(.*)</function>\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>\s*", re.DOTALL)


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _written(value: dict[str, Any]) -> WrittenCall | None:
    """An object with a name and arguments, under one of the names that models give them."""
    inner = object_in(value.get("function")) or value
    name = raw_text_in(inner.get("name"))
    given = inner.get("arguments", inner.get("parameters", inner.get("args")))
    if isinstance(given, str):
        given = _json(given)
    arguments = object_in(given)
    if not name or arguments is None:
        return None
    return WrittenCall(name, msgspec.json.encode(arguments).decode())


def _all_written(value: Any) -> list[WrittenCall] | None:
    values = objects_in([value] if isinstance(value, dict) else value)
    calls = [call for each in values if (call := _written(each)) is not None]
    whole = len(cast("list[Any]", value)) if isinstance(value, list) else 1
    return calls if calls and len(calls) == whole else None


def _bare(text: str, _: Tools) -> Found:
    """JSON and nothing else, perhaps fenced. What is broken may be an answer in JSON, and stays text."""
    fenced = _FENCED.fullmatch(text)
    return _all_written(_json(fenced[1] if fenced else text))


def _tagged(text: str, tools: Tools) -> Found:
    """One block of `<tool_call>` after the other: JSON in it (Hermes, Qwen), or `<function=..>` (Qwen Coder)."""
    calls: list[WrittenCall] = []
    end = 0
    for block in _TAGGED.finditer(text):
        if block.start() != end:
            return None
        end = block.end()
        inner = block[1]
        function = _FUNCTION.fullmatch(inner)
        found = _from_parameters(function[1], function[2], tools) if function else _all_written(_json(inner.strip()))
        if found is None:
            return _broken(text)
        calls += found
    rest = text[end:]
    if rest and not rest.startswith("<tool_call>"):
        return None
    return _broken(text) if rest or not calls else calls


def _from_parameters(name: str, body: str, tools: Tools) -> list[WrittenCall] | None:
    """Parameters by their tags. A value is text, or JSON where the tool's schema wants something else."""
    wanted = object_in(tools[name].parameters.get("properties")) or {} if name in tools else {}
    arguments: dict[str, Any] = {}
    end = 0
    for parameter in _PARAMETER.finditer(body):
        if parameter.start() != end:
            return None
        end = parameter.end()
        schema = object_in(wanted.get(parameter[1])) or {}
        value = None if schema.get("type", "string") == "string" else _json(parameter[2])
        arguments[parameter[1]] = parameter[2] if value is None else value
    if body[end:].strip():
        return None
    return [WrittenCall(name, msgspec.json.encode(arguments).decode())]


def _marked(text: str, _: Tools) -> Found:
    """`[TOOL_CALLS]` and a list of calls (Mistral)."""
    found = _all_written(_json(text.removeprefix("[TOOL_CALLS]").strip()))
    return _broken(text) if found is None else found


def _broken(text: str) -> Broken:
    named = _NAME.search(text)
    return Broken((named[1] or named[2]) if named else None, text)


WAYS: dict[Literal["json", "tool_call", "mistral"], Way] = {
    "json": Way(("{", "[", "```"), _bare),
    "tool_call": Way(("<tool_call>",), _tagged),
    "mistral": Way(("[TOOL_CALLS]",), _marked),
}
"""The ways by the names that a profile gives them."""
