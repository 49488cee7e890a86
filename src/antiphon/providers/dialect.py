"""What a server understands of JSON Schema, as data: one frozen row each."""

from typing import Literal

from msgspec import Struct

__all__ = ["DIALECTS", "Dialect"]


class Dialect(Struct, frozen=True, kw_only=True):
    """One server's JSON Schema.

    `references`: kept, or each replaced by a copy of what it points to; what contains itself is kept where `recursion` is
    known, and told once elsewhere. A reference never has anything beside it. `keywords` and `formats` are those that are
    known, `None` for any; what is not is said in the description. `one_of`, `all_of`, `constants`, `defaults`: whether
    these keywords are known (else `anyOf`, one merged schema, `enum`, a word in the description). `null_lists`: a type may
    be a list with `null` in it. `items`: an array must say what its items are. `plain_top`: the schema of a tool must be an
    object without alternatives at its top.

    `strict` is the dialect of a mode in which a model cannot leave the schema. There `closed` means that every object must
    be closed (what is free cannot be told), `all_required` that every member must be required, so that one that may be
    left out becomes one that may be null.
    """

    references: Literal["keep", "inline"] = "keep"
    recursion: bool = True
    keywords: frozenset[str] | None = None
    formats: frozenset[str] | None = None
    one_of: bool = True
    all_of: bool = True
    constants: bool = True
    defaults: bool = True
    null_lists: bool = True
    items: bool = False
    plain_top: bool = False
    closed: bool = False
    all_required: bool = False
    most_properties: int = 5_000
    strict: "Dialect | None" = None


_FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"})
_COMMON = frozenset(
    {
        "$anchor", "$comment", "$defs", "$id", "$ref", "additionalProperties", "anyOf", "description", "enum", "format", "items",
        "properties", "required", "title", "type",
    }
)  # fmt: skip

# platform.openai.com/docs/guides/structured-outputs, "Supported schemas": types, `enum`, `const`, `anyOf`, references and
# recursion; limits of numbers and arrays, `pattern` and formats of text; all members required, all objects closed; no
# alternatives at the top; 5,000 members. `default` is refused.
_OPENAI_STRICT = Dialect(
    keywords=_COMMON
    | {
        "const", "exclusiveMaximum", "exclusiveMinimum", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern",
    },
    formats=_FORMATS,
    one_of=False,
    all_of=False,
    defaults=False,
    items=True,
    plain_top=True,
    closed=True,
    all_required=True,
)  # fmt: skip
# platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations": no recursion, no limits of
# numbers, texts or arrays but `minItems` of 0 and 1, objects closed; members may be left out.
_ANTHROPIC_STRICT = Dialect(
    recursion=False,
    keywords=_COMMON | {"const", "default", "pattern"},
    formats=_FORMATS | {"uri"},
    one_of=False,
    all_of=False,
    plain_top=True,
    closed=True,
)

DIALECTS: dict[str, Dialect] = {
    # Whatever a tool's author wrote: servers that read JSON Schema as it is (grammars of llama.cpp, vLLM, SGLang).
    "plain": Dialect(),
    # Servers and templates of which nothing is known: many look at `properties` alone, and follow no reference.
    "inlined": Dialect(references="inline"),
    # platform.openai.com/docs/guides/function-calling: "schema must have type 'object' and not have 'oneOf'/'anyOf'/
    # 'allOf'/'enum'/'not' at the top level", "array schema missing items".
    "openai": Dialect(items=True, plain_top=True, strict=_OPENAI_STRICT),
    # platform.claude.com/docs/en/agents-and-tools/tool-use: "input_schema does not support oneOf, allOf, or anyOf at the
    # top level".
    "anthropic": Dialect(plain_top=True, strict=_ANTHROPIC_STRICT),
    # ai.google.dev/api/generate-content, "responseJsonSchema" and "FunctionDeclaration": the subset that is listed there.
    "gemini": Dialect(
        keywords=_COMMON | {"maxItems", "maximum", "minItems", "minimum", "oneOf", "prefixItems", "propertyOrdering"},
        all_of=False,
        constants=False,
        defaults=False,
    ),
}
"""The dialects by name."""
