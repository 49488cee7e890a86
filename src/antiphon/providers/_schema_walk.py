"""One walk over a JSON Schema that tells it in a dialect. Pure."""

from typing import Any, cast

from antiphon.providers._schema_nodes import ANNOTATIONS, Node, References, merged, nullable
from antiphon.providers.dialect import Dialect
from antiphon.providers.json_text import dumps

__all__ = ["Untellable", "Walk"]

_MOST_NODES = 2_000  # beyond them definitions are no longer copied to where they are referred to
_MAPS = frozenset({"dependentSchemas", "patternProperties", "properties"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMAS = frozenset(
    {
        "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
        "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
_DEFINITIONS = frozenset({"$defs", "definitions"})
_FREE = frozenset({"patternProperties", "unevaluatedProperties", "propertyNames", "dependentSchemas"})
_SAYS_WHAT = frozenset({"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "properties", "items"})


class Untellable(Exception):
    """The dialect is strict, and this schema cannot be told in it without becoming another one."""


class Walk:
    """Tells the schemas of one document. `notes` are what was lost, each a place and what became of it."""

    def __init__(self, root: Node, dialect: Dialect) -> None:
        self.root = root
        self.dialect = dialect
        self.references = References(root)
        self.definitions: Node = {}
        self.notes: list[str] = []
        self._nodes = 0
        self._properties = 0

    def told(self, node: Any, path: str, above: tuple[str, ...] = ()) -> Node:
        """A schema in the dialect. `above` are the references that the walk is within."""
        self._nodes += 1
        if not isinstance(node, dict):
            node = {} if node is not False else {"not": {}}
        given = cast("Node", node)
        if "$ref" in given:
            return self._reference(given, path, above)
        if "allOf" in given and not self.dialect.all_of:
            given, above = self._without_all_of(given, path, above)
            if "$ref" in given:
                return self._reference(given, path, above)
        return self._told_plain(given, path, above)

    def note(self, path: str, text: str) -> None:
        """Something is lost at this place."""
        sentence = f"{path or '/'}: {text}"
        if sentence not in self.notes:
            self.notes.append(sentence)

    def refuse(self, path: str, text: str) -> None:
        """As `note`, but a strict schema cannot do without it."""
        if self.dialect.closed:
            raise Untellable(f"{path or '/'}: {text}")
        self.note(path, text)

    def _reference(self, node: Node, path: str, above: tuple[str, ...]) -> Node:
        """A reference stands alone: many servers refuse what stands beside it, and others ignore it."""
        pointer = node["$ref"]
        beside = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
        beside = {keyword: value for keyword, value in beside.items() if keyword not in _DEFINITIONS}
        target = self.references.target(pointer)
        if target is None:
            self.refuse(path, f"the reference {pointer!r} leads out of the schema, and was left out")
            return self._told_plain(beside, path, above)
        if self.references.is_cyclic(pointer):
            return self._recursive(pointer, target, beside, path, above)
        copied = bool(beside) or self.dialect.references == "inline"
        if copied and self._nodes < _MOST_NODES:
            whole = merged([target, beside])
            if whole is None:
                whole = {"allOf": [target, beside]}
            return self.told(whole, path, (*above, pointer))
        return self._kept(pointer, target, beside, path)

    def _recursive(self, pointer: str, target: Node, beside: Node, path: str, above: tuple[str, ...]) -> Node:
        if self.dialect.recursion:
            return self._kept(pointer, target, beside, path)
        if pointer in above:
            self.refuse(path, f"{pointer!r} contains itself, and is told once")
            kinds = target.get("type")
            return {"type": kinds} if kinds is not None else {}
        return self.told(merged([target, beside]) or target, path, (*above, pointer))

    def _kept(self, pointer: str, target: Node, beside: Node, path: str) -> Node:
        if beside.keys() - {"title", "$comment"}:
            self.note(path, f"what stands beside the reference was left out: {', '.join(beside)}")
        if pointer == "#":
            return {"$ref": "#"}
        name = self.references.name(pointer)
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = self.told(target, f"/$defs/{name}")
        return {"$ref": f"#/$defs/{name}"}

    def _without_all_of(self, node: Node, path: str, above: tuple[str, ...]) -> tuple[Node, tuple[str, ...]]:
        """A node whose `allOf` is told as one schema with it."""
        rest = {keyword: value for keyword, value in node.items() if keyword != "allOf"}
        parts, above = self._flat(node["allOf"], path, above, alone=not rest.keys() - ANNOTATIONS)
        whole: Node | None = merged([*parts, rest])
        if whole is None:
            self.refuse(path, "the parts of 'allOf' contradict each other; the first are told")
            whole = Node()
            for part in (*parts, rest):
                whole |= {keyword: value for keyword, value in part.items() if keyword not in whole}
        return whole, above

    def _flat(
        self, parts: list[Any], path: str, above: tuple[str, ...], *, alone: bool
    ) -> tuple[list[Node], tuple[str, ...]]:
        """The parts of an `allOf`, those within them too, with what they refer to. `alone`: nothing else is demanded."""
        flat: list[Node] = []
        waiting = list(parts)
        while waiting:
            part: Any = waiting.pop(0)
            one = cast("Node", part) if isinstance(part, dict) else {}
            pointer = one.get("$ref")
            if isinstance(pointer, str):
                target = self.references.target(pointer)
                if target is not None and self.references.is_cyclic(pointer):
                    if alone and len(parts) == 1:
                        return [{"$ref": pointer}], above
                    target = None
                if target is None:
                    self.refuse(path, f"a part of 'allOf' cannot be told: {pointer!r}")
                    continue
                above = (*above, pointer)
                one = {**target, **{keyword: value for keyword, value in one.items() if keyword != "$ref"}}
            waiting[:0] = one.get("allOf", ())
            flat.append({keyword: value for keyword, value in one.items() if keyword != "allOf"})
        return flat, above

    def _told_plain(self, node: Node, path: str, above: tuple[str, ...]) -> Node:
        told: Node = {}
        lost: Node = {}
        for keyword, value in node.items():
            if keyword in _DEFINITIONS:
                continue
            if not self._takes(keyword, value):
                lost[keyword] = value
            elif keyword == "const" and not self.dialect.constants:
                told["enum"] = [value]
            elif keyword == "oneOf" and not self.dialect.one_of and "anyOf" not in node:
                told["anyOf"] = self._inner("oneOf", value, path, above)
            else:
                told[keyword] = self._inner(keyword, value, path, above)
        if self.dialect.items and _is(told, "array") and not told.keys() & {"items", "prefixItems"}:
            told["items"] = self.told({}, f"{path}/items", above)
        self._finish(told, node, lost, path)
        return told

    def _finish(self, told: Node, given: Node, lost: Node, path: str) -> None:
        if lost:
            self._lose(told, lost, path)
        if self.dialect.closed:
            self._close(told, given, path)
        if told.get("additionalProperties") is False:
            told.setdefault("required", [])  # strict readers take an absent list for null

    def _takes(self, keyword: str, value: Any) -> bool:
        """Whether the dialect knows the keyword, or another one that says the same."""
        dialect = self.dialect
        match keyword:
            case "default":
                return dialect.defaults
            case "format":
                return dialect.formats is None or value in dialect.formats
            case "const" if not dialect.constants:
                return True
            case "oneOf" if not dialect.one_of:
                return True
            case _:
                return dialect.keywords is None or keyword in dialect.keywords

    def _inner(self, keyword: str, value: Any, path: str, above: tuple[str, ...]) -> Any:
        if keyword in _MAPS and isinstance(value, dict):
            return {
                name: self.told(each, f"{path}/{keyword}/{name}", above) for name, each in cast("Node", value).items()
            }
        if isinstance(value, list) and (keyword in _LISTS or keyword == "items"):
            return [
                self.told(each, f"{path}/{keyword}/{place}", above)
                for place, each in enumerate(cast("list[Any]", value))
            ]
        if keyword in _SCHEMAS and (isinstance(value, dict) or (keyword == "items" and isinstance(value, bool))):
            return self.told(value, f"{path}/{keyword}", above)
        return cast("Any", value)

    def _lose(self, told: Node, lost: Node, path: str) -> None:
        """What the target cannot hold a model to is said in the description: the arguments are checked all the same."""
        self.note(path, f"not told as rules: {', '.join(lost)}")
        said = [f"{keyword}: {dumps(value).decode()}" for keyword, value in lost.items() if keyword not in ANNOTATIONS]
        if "default" in lost:
            said.append(f"default: {dumps(lost['default']).decode()}")
        if said and "$schema" not in lost:
            text = told.get("description")
            told["description"] = f"{text} ({'; '.join(said)})" if isinstance(text, str) else f"({'; '.join(said)})"

    def _close(self, told: Node, given: Node, path: str) -> None:
        """What strict modes want: every object closed; where all members are required, those left out may be null."""
        if not told.keys() & _SAYS_WHAT:
            raise Untellable(f"{path or '/'}: anything is allowed there")
        if free := sorted(_FREE & given.keys()):
            raise Untellable(f"{path or '/'}: {free[0]!r} cannot be told")
        if not _is(told, "object") and "properties" not in told:
            return
        extra = given.get("additionalProperties", False if given.get("properties") else None)
        if extra is not False:
            raise Untellable(f"{path or '/'}: the object may have members of any name")
        members: Node = told.setdefault("properties", {})
        required = [name for name in told.get("required", ()) if name in members]
        if len(required) != len(told.get("required", ())):
            raise Untellable(f"{path or '/'}: a member is required that is not described")
        if self.dialect.all_required:
            lists = self.dialect.null_lists
            for name in members:
                if name not in required:
                    members[name] = nullable(members[name], lists=lists)
            required = list(members)
        told["additionalProperties"], told["required"] = False, required
        self._properties += len(members)
        if self._properties > self.dialect.most_properties:
            raise Untellable(f"more than {self.dialect.most_properties} members")


def _is(node: Node, kind: str) -> bool:
    """Whether a value may be of this type, as far as `type` says it."""
    kinds: Any = node.get("type")
    return kinds == kind or (isinstance(kinds, list) and kind in kinds)
