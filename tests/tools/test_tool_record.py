"""`Tool`: names, limits, approval, tools from models and from schemas, and what is loaded for which of them."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from msgspec.structs import replace
from pydantic import BaseModel, RootModel

from antiphon.errors import UsageError
from antiphon.tools import (
    CallInfo,
    Field,
    Tool,
    ToolContext,
    ToolHookCall,
    ToolHookOutcome,
    ToolHooks,
    UseArguments,
    UseResult,
    tool,
)

pytestmark = pytest.mark.anyio


class Order(BaseModel):
    """Order something."""

    item: str = Field(description="What.")
    count: int = 1


def make(**traits: Any) -> Tool:
    return Tool.from_schema("t", "", {}, lambda: None, **traits)


@pytest.mark.parametrize("name", ["a", "get_weather", "a-b", "ns.tool:1", "9", "x" * 128])
def test_names_that_some_model_can_call(name: str) -> None:
    """The union of what the vendors take; a narrower one has its own check."""
    assert Tool.from_schema(name, "", {}).name == name


@pytest.mark.parametrize("name", ["", " ", "a b", "a/b", "größe", "a\n", "x" * 129, None, 1])
def test_names_that_no_model_can_call_are_refused(name: Any) -> None:
    """The request would fail, and with it every other tool."""
    with pytest.raises(UsageError, match="is no name for a tool; give name= with 1 to 128 letters"):
        Tool.from_schema(name, "", {})


@pytest.mark.parametrize("name", ["auto", "none", "required"])
def test_words_of_a_tool_choice_are_no_names(name: str) -> None:
    """Nobody could ever choose the tool."""
    with pytest.raises(
        UsageError, match=f"^'{name}' means something else as a tool choice; give the tool another name$"
    ):
        Tool.from_schema(name, "", {})


@pytest.mark.parity("A20")
async def test_a_model_tool_gets_one_instance() -> None:
    """The handler's argument has a static type, and the schema is made from it."""

    def order(given: Order) -> str:
        return f"{given.count} x {given.item}"

    async def later(given: Order, context: ToolContext[str]) -> str:
        return context.deps + given.item

    made = Tool.from_model(Order, order, label="Order")
    assert (made.name, made.description, made.label) == ("order", "Order something.", "Order")
    assert made.parameters == {
        "additionalProperties": False,
        "properties": {
            "item": {"description": "What.", "type": "string"},
            "count": {"default": 1, "type": "integer"},
        },
        "required": ["item"],
        "type": "object",
    }
    prepared = made.prepare('{"item": "tea"}')
    assert prepared.object == {"item": "tea", "count": 1}
    assert made.invoke(prepared, ToolContext()) == "1 x tea"
    other = Tool.from_model(Order, later, name="o", description="")
    assert (other.name, other.description, other.is_async) == ("o", "", True)
    assert await other.invoke(other.prepare('{"item": "tea"}'), ToolContext(deps="a ")) == "a tea"


def test_a_model_that_contains_itself_has_its_members_at_the_top() -> None:
    """Servers want an object there, not a reference."""
    made = Tool.from_model(Node, lambda node: node, name="grow")
    assert made.parameters["type"] == "object"
    assert made.parameters["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    prepared = made.prepare('{"children": [{"children": []}]}')
    assert made.invoke(prepared, ToolContext()) == Node(children=[Node()])


class Node(BaseModel):
    children: "list[Node]" = []


class Pair(TypedDict):
    a: int


class Unclear(BaseModel):
    back: Callable[[], int]


@dataclass
class Point:
    x: int


def test_dataclasses_and_typed_dicts_are_models_too() -> None:
    """Whatever is an object with typed members will do."""
    made = Tool.from_model(Point, lambda point: point.x, name="p")
    assert made.invoke(made.prepare('{"x": 1}'), ToolContext()) == 1
    other = Tool.from_model(Pair, lambda pair: pair["a"], name="p")
    assert other.invoke(other.prepare('{"a": 1}'), ToolContext()) == 1


def test_a_model_that_is_no_object_is_refused() -> None:
    """Arguments have names."""
    with pytest.raises(UsageError, match="are 'array' in JSON, but they must be an object: give a model with fields"):
        Tool.from_model(RootModel[list[int]], print, name="p")
    with pytest.raises(UsageError, match="the model of tool 'p' has no JSON Schema: "):
        Tool.from_model(Unclear, print, name="p")
    with pytest.raises(UsageError, match="'<lambda>' is no name for a tool; give name="):
        Tool.from_model(Order, lambda order: order)


@pytest.mark.parity("A20")
async def test_a_handler_gets_the_context_if_it_wants_it() -> None:
    """By its annotation, else as the second thing that it must be given."""

    def annotated(context: ToolContext[str], arguments: dict[str, Any]) -> Any:
        return context.deps, arguments

    def named(arguments: dict[str, Any], *, context: ToolContext[str]) -> Any:
        return context.deps, arguments

    def alone(context: ToolContext[str]) -> Any:
        return context.deps

    def by_word(*, context: ToolContext[str]) -> Any:
        return context.deps

    def unknown(arguments: dict[str, Any], given: "ToolContext[Nowhere]") -> Any:  # noqa: F821  # pyright: ignore[reportUndefinedVariable] - the rule under test
        return given.deps, arguments

    def optional(arguments: dict[str, Any], indent: int = 2) -> Any:
        return indent, arguments

    async def later(arguments: dict[str, Any]) -> Any:
        return arguments

    schema = {"type": "object"}
    context = ToolContext(deps="d")

    def run(handler: Any) -> Any:
        made = Tool.from_schema("t", "", schema, handler)
        return made.invoke(made.prepare('{"a": 1}'), context)

    assert run(annotated) == run(named) == run(unknown) == ("d", {"a": 1})
    assert run(alone) == run(by_word) == "d"
    assert run(optional) == (2, {"a": 1})
    assert run(lambda arguments: arguments) == {"a": 1}
    assert run(lambda arguments, ctx: (ctx.deps, arguments)) == ("d", {"a": 1})
    assert run(lambda *given: given) == ({"a": 1},)
    assert run(lambda: 7) == 7
    assert await run(later) == {"a": 1}


def test_a_handler_that_wants_more_is_refused() -> None:
    """Nobody would know what to give it."""
    with pytest.raises(
        UsageError, match="the handler of tool 't' takes 'a', 'b', 'c'; it gets the arguments as one value"
    ):
        Tool.from_schema("t", "", {}, lambda a, b, c: None)  # pyright: ignore[reportArgumentType] - the rule under test


def test_a_tool_without_anything_to_run_says_that_it_is_external() -> None:
    """A body that was forgotten would be noticed at the first call."""
    with pytest.raises(UsageError, match=r"^tool 't' has nothing to run; give it a function, or say external=True$"):
        replace(make(), body=None)


def test_a_tool_without_a_body_is_external() -> None:
    """Its result comes from elsewhere; running it by mistake must not look like a result."""

    @tool(external=True)
    def confirm(text: str) -> str: ...  # type: ignore[empty-body] - only the signature counts

    for made in (Tool.from_schema("confirm", "", {}), confirm):
        assert made.external
        with pytest.raises(UsageError, match="tool 'confirm' is external and has nothing to run"):
            made.invoke(made.prepare('{"text": "a"}' if made is confirm else ""), ToolContext())


def test_limits_that_cannot_be_kept_are_refused() -> None:
    """They would be noticed at the first call, or never."""
    with pytest.raises(UsageError, match=r"^tool 't' has timeout=-1; give seconds, or 0 for no limit$"):
        make(timeout=-1)
    with pytest.raises(UsageError, match="timeout=nan"):
        make(timeout=float("nan"))
    with pytest.raises(UsageError, match=r"^tool 't' has max_calls=-1; give a number from 0 up, or None$"):
        make(max_calls=-1)
    assert make(timeout=0, max_turns=0).timeout == 0


@pytest.mark.parity("B8")
@pytest.mark.parametrize(
    ("answer", "verdict"),
    [(False, "run"), ("run", "run"), (True, "ask"), ("ask", "ask"), ("deny", "deny")],
)
def test_a_tool_says_for_each_call_whether_it_wants_a_yes(answer: Any, verdict: str) -> None:
    """A write to one path asks, a write to another does not."""
    seen: list[CallInfo] = []

    def judge(call: CallInfo) -> Any:
        seen.append(call)
        return answer

    assert make(needs_approval=judge).verdict("c1", {"path": "/a"}) == verdict
    assert seen == [CallInfo("c1", "t", {"path": "/a"})]
    if isinstance(answer, bool):
        assert make(needs_approval=answer).verdict("c1", {}) == verdict


def test_a_verdict_that_nobody_knows_is_an_error() -> None:
    """`None` from a predicate without a return must not run the call."""
    for answer in (None, "yes", 1):
        with pytest.raises(UsageError, match="answer a boolean, 'run', 'ask' or 'deny'"):
            make(needs_approval=lambda call, answer=answer: answer).verdict("c1", {})


def test_a_predicate_answers_at_once() -> None:
    """A coroutine is true, and would ask for everything."""

    async def judge(call: CallInfo) -> bool:
        return False

    with pytest.raises(UsageError, match="needs_approval of tool 't' is async, but it may not wait"):
        make(needs_approval=judge)


class SearchArguments(TypedDict):
    query: str


@pytest.mark.parity("A11")
@pytest.mark.parity("A20")
def test_hooks_of_a_tool_are_typed_by_its_arguments() -> None:
    """The type of what a hook reads is that of the schema, for whoever checks types."""

    def before(given: ToolHookCall[SearchArguments]) -> UseArguments | None:
        query: str = given.arguments["query"]
        return UseArguments({"query": query.strip()}) if query != query.strip() else None

    async def after(given: ToolHookOutcome[SearchArguments]) -> UseResult | None:
        return UseResult(content="[gone]") if "secret" in given.result.text else None

    hooks = ToolHooks(before_execute=before, after_execute=after)

    @tool(hooks=hooks)
    def search(query: str) -> str:
        return query

    assert search.hooks is hooks


def test_a_tool_can_be_had_under_another_name() -> None:
    """The same checks and the same body; what the request says follows the name."""

    @tool
    def add(a: int) -> int:
        return a + 1

    other = replace(add, name="plus", needs_approval=True)
    assert (add.spec().name, other.spec().name) == ("add", "plus")
    assert other.invoke(other.prepare('{"a": 1}'), ToolContext()) == 2
    with pytest.raises(UsageError, match="is no name for a tool"):
        replace(add, name="a b")


def test_tools_are_told_apart_by_being_themselves() -> None:
    """Two definitions that look alike are two tools; one is found in a set or a dict."""
    one, two = make(), make()
    assert one == one  # noqa: PLR0124 - the rule under test
    assert one != two
    assert len({one, two, one}) == 2


def loaded_after(code: str) -> set[str]:
    program = f"{code}\nimport sys; print(*[m for m in ('pydantic', 'jsonschema_rs', 'docstring_parser') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    """A program with one kind of tool should not wait for what checks the other kind."""
    assert loaded_after("from antiphon.tools import *; import antiphon.tools") >= {"pydantic"}  # `*` asks for Field
    assert loaded_after("import antiphon.tools; from antiphon.tools import Tool, tool, ToolRegistry, shape") == set()
    assert loaded_after("from antiphon.tools import Tool; Tool.from_schema('t', '', {})") == {"jsonschema_rs"}
    function = "from antiphon.tools import tool\n@tool\ndef f(a: int) -> int: return a\n"
    assert loaded_after(f"{function}f.invoke(f.prepare('{{\"a\": 1}}'), None)") == {"pydantic"}


def test_the_face_has_field_and_nothing_else_late() -> None:
    """A misspelt name is still an error."""
    import antiphon.tools

    assert antiphon.tools.Field is Field
    with pytest.raises(AttributeError, match=r"module 'antiphon.tools' has no attribute 'Fields'"):
        antiphon.tools.Fields  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue] - the rule under test
