"""The JSON Schema that a model sees of Python types."""

import dataclasses
from collections.abc import Set as AbstractSet
from typing import Any, cast

import msgspec
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import CoreConfig, PydanticSerializationError, SchemaValidator, core_schema

from antiphon.tools._json import json_text
from antiphon.tools._walk import Node, referred

__all__ = ["shown_schema"]


def shown_schema(core: core_schema.CoreSchema) -> tuple[Node, bool]:
    """The JSON Schema of a core schema, and whether its objects are closed.

    They are, unless a model in it says itself what to do with unknown members (`extra="allow"` or `"ignore"`): then
    each of them decides for itself, as pydantic has it.
    """
    generator = Shown()
    schema = generator.generate(core)
    closed = not generator.stated
    if not closed:
        generator = Shown()
        generator.closing = False
        schema = generator.generate(core)
    if "$ref" in schema:  # a model that contains itself: what is asked for must stand at the top
        schema = {**referred(schema["$ref"], schema), "$defs": schema["$defs"]}
    return schema, closed


class Shown(GenerateJsonSchema):
    """pydantic's generator without what it makes up: titles, and defaults that mean something else as JSON."""

    closing = True
    stated = False
    shared: list[core_schema.CoreSchema]
    enums: set[str]

    def generate(self, schema: core_schema.CoreSchema, mode: Any = "validation") -> Node:
        self.shared = schema["definitions"] if schema["type"] == "definitions" else []
        self.enums = set()
        return self.without_enum_titles(super().generate(schema, mode))

    def sort(self, value: Node, parent_key: str | None = None) -> Node:  # noqa: ARG002 - what pydantic calls
        """The order is the business of the one who keeps the schema."""
        return value

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """What cannot be shown is left out; the tool works all the same."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - what pydantic calls
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Node:
        """A default is shown if sending it means the same as leaving it out; else Python fills it in later."""
        shown = super().default_schema(schema)
        if "default" in shown and not self.means_the_same(schema, shown["default"]):
            shown = {keyword: value for keyword, value in shown.items() if keyword != "default"}
        return shown

    def means_the_same(self, schema: core_schema.WithDefaultSchema, shown: Any) -> bool:
        inner = schema["schema"]
        if self.shared:
            inner = core_schema.definitions_schema(inner, self.shared)
        try:
            validator = SchemaValidator(inner, CoreConfig(strict=True))
            taken = validator.validate_json(msgspec.json.encode(shown), strict=True)
            return bool(taken == self.get_default_value(schema))
        except Exception:  # noqa: BLE001 - whatever is wrong with it, such a default cannot stand in for the real one
            return False

    def encode_default(self, dft: Any) -> Any:
        return super().encode_default(ordered(dft))

    def model_schema(self, schema: core_schema.ModelSchema) -> Node:
        shown = super().model_schema(schema)
        return shown if schema.get("root_model") else self.tidied(shown, schema)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> Node:
        return self.tidied(super().dataclass_schema(schema), schema)

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> Node:
        return self.tidied(super().typed_dict_schema(schema), schema)

    def enum_schema(self, schema: core_schema.EnumSchema) -> Node:
        self.enums.add(schema["cls"].__name__)
        return super().enum_schema(schema)

    def without_enum_titles(self, schema: Any) -> Any:
        """The schema without titles of enums, which pydantic writes too late for `enum_schema`."""
        if isinstance(schema, dict):
            node = cast("Node", schema)
            drop = "enum" in node or "const" in node
            return {
                keyword: self.without_enum_titles(value)
                for keyword, value in node.items()
                if not (drop and keyword == "title" and value in self.enums)
            }
        return (
            [self.without_enum_titles(each) for each in cast("list[Any]", schema)]
            if isinstance(schema, list)
            else schema
        )

    def tidied(self, shown: Node, schema: Any) -> Node:
        """An object without a made-up title, closed if nobody said otherwise, and `required` with what is closed."""
        if "cls" in schema and shown.get("title") == schema["cls"].__name__:
            del shown["title"]
        config: dict[str, Any] = schema.get("config", {})
        extra = schema.get("extra_behavior", config.get("extra_fields_behavior"))
        if extra in ("allow", "ignore"):
            self.stated = True
        elif self.closing and shown.get("type") == "object":
            shown.setdefault("additionalProperties", False)
        if shown.get("additionalProperties") is False:
            shown.setdefault("required", [])  # strict readers take an absent list for null
        return shown


def ordered(default: Any) -> Any:
    """A default whose sets are sorted lists: their own order changes from process to process.

    Raises `PydanticSerializationError` for a set inside an object, where it cannot be replaced.
    """
    match default:
        case AbstractSet():
            return sorted(
                [ordered(each) for each in cast("AbstractSet[Any]", default)], key=lambda each: json_text(each, {})
            )
        case dict():
            return {key: ordered(value) for key, value in cast("dict[Any, Any]", default).items()}
        case list():
            return [ordered(each) for each in cast("list[Any]", default)]
        case tuple() if type(cast("Any", default)) is tuple:
            return tuple([ordered(each) for each in cast("tuple[Any, ...]", default)])
        case _ if isinstance(default, BaseModel) or dataclasses.is_dataclass(default):
            for value in vars(default).values():
                if ordered(value) != value:
                    raise PydanticSerializationError("a set inside an object has no order")
            return default
        case _:
            return default
