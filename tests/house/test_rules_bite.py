"""Each rule finds a planted fault, and lets the nearest innocent thing pass. A rule that cannot fail protects nothing."""

import textwrap
from pathlib import Path

import pytest

from . import rules
from .source import Tree


def tree(**texts: str) -> Tree:
    """A package from `room__file="text"`: a double underscore is a folder, `face` the package's own `__init__`."""
    names = {key: "__init__" if key == "face" else key.replace("__", "/").replace("INIT", "__init__") for key in texts}
    return Tree.of({f"{names[key]}.py": textwrap.dedent(text) for key, text in texts.items()})


ROWS = {
    "errors": (),
    "types": ("errors",),
    "agent": ("types", "providers.resolve"),
    "providers": (),
    "antiphon": ("agent",),
}


@pytest.mark.parametrize(
    "text",
    [
        "from antiphon.agent.agent import Agent",
        "from antiphon.agent import agent",
        "import antiphon.agent.agent as a",
        "from ..agent.agent import Agent",
        "from ..agent import agent",
        "from .. import agent",
        "if TYPE_CHECKING:\n    from antiphon.agent.agent import Agent",
        "def f():\n    from antiphon.agent.agent import Agent",
        "def f():\n    return import_module('antiphon.agent.agent')",
        "try:\n    import antiphon.agent\nexcept ImportError:\n    pass",
    ],
)
def test_an_import_that_climbs_is_found_wherever_it_hides(text: str) -> None:
    library = tree(types__events=text, types__INIT="", agent__agent="", agent__INIT="", errors="")
    (fault,) = rules.imports_that_climb(library, ROWS)
    assert fault.startswith("types/events.py:")
    assert "'types' imports 'antiphon.agent" in fault
    assert "may import only errors" in fault


def test_an_import_that_points_down_passes() -> None:
    library = tree(
        errors="import antiphonal, json",
        types__events="from antiphon.errors import X\nfrom .content import Y",
        agent__agent="from ..providers.resolve import get_model",
        face="from antiphon.agent import Agent",
    )
    assert rules.imports_that_climb(library, ROWS) == []


def test_a_row_for_one_file_does_not_open_its_room() -> None:
    library = tree(agent__agent="from antiphon.providers.catalogue import X", providers__catalogue="")
    (fault,) = rules.imports_that_climb(library, ROWS)
    assert "'antiphon.providers.catalogue'" in fault


def test_a_room_without_a_row_is_a_fault() -> None:
    (fault,) = rules.imports_that_climb(tree(attic__box=""), ROWS)
    assert "'attic' has no row" in fault


def test_a_neighbour_is_found_and_a_shared_file_is_not_one() -> None:
    library = tree(
        providers__one__INIT="",
        providers__two__INIT="",
        providers__history="",
        providers__one__encode="from antiphon.providers.history import x\nfrom ..two.decode import y",
        providers__two__decode="",
        providers__resolve="from antiphon.providers.one.encode import z",
    )
    (fault,) = rules.neighbours(library, "providers", {})
    assert fault.startswith("providers/one/encode.py:2: 'one' imports its neighbour 'two'")
    assert rules.neighbours(library, "providers", {"two": "a reason"}) == []


def test_a_private_file_is_for_its_folder() -> None:
    library = tree(
        tools___names="",
        tools__tool="from __future__ import annotations\nfrom ._names import x",
        loop__driver="from antiphon.tools._names import x",
    )
    (fault,) = rules.imports_of_private_files(library)
    assert fault.startswith("loop/driver.py:1: 'antiphon.tools._names'")


@pytest.mark.parametrize(
    "text",
    [
        "from antiphon import Agent",
        "import antiphon",
        "from antiphon.types import Text",
        "from ..types import Text",
        "import antiphon.types",
        "from antiphon import types",
        "from antiphon.types import Lazy",
        "from antiphon.types.messages import Text",
        "from antiphon.types.content import Struct",
    ],
)
def test_a_name_that_is_only_passed_on_is_found(text: str) -> None:
    library = tree(
        types__content="from msgspec import Struct\nclass Text: ...",
        types__messages="from antiphon.types.content import Text",
        types__INIT="from antiphon.types.content import Text\ndef __getattr__(name): ...\n__all__ = ['Lazy', 'Text']",
        loop__driver=text,
        face="from antiphon.types import Text",
    )
    (fault,) = rules.imports_from_a_face(library)
    assert fault.startswith("loop/driver.py:1: ")


def test_a_name_from_its_own_file_passes() -> None:
    library = tree(
        types__content="class Text: ...",
        types__INIT="VERSION = 1",
        types__unset="from msgspec import UnsetType as Unset\n__all__ = ['Unset']",
        loop__driver="from ..types.content import Text\nfrom ..types import content, VERSION\nfrom ..types.unset import Unset",
    )
    assert rules.imports_from_a_face(library) == []


def test_a_ring_is_found_and_a_deferred_import_breaks_it() -> None:
    closed = tree(loop__a="from .b import x", loop__b="from .c import x", loop__c="import antiphon.loop.a")
    (fault,) = rules.rings(closed)
    assert all(f"antiphon.loop.{name}" in fault for name in "abc")
    open_ = tree(loop__a="from .b import x", loop__b="def f():\n    from .a import x")
    assert rules.rings(open_) == []


def test_a_foreign_package_outside_its_file_is_found() -> None:
    rows = {"aiohttp": ("wire/http.py",), "rich": ("cli/",)}
    library = tree(
        wire__http="import aiohttp, ssl, anyio.abc",
        wire__sse="def f():\n    from aiohttp.client import ClientSession",
        cli__deep__render="import rich.text",
        cli="import numpy",
    )
    bound, unknown = rules.foreign_imports(library, rows, ["anyio"])
    assert bound.startswith("wire/sse.py:2: 'aiohttp' is bound to wire/http.py")
    assert unknown.startswith("cli.py:1: 'numpy' has no row")


def test_long_files_are_found_and_reasons_do_not_outlive_them() -> None:
    library = tree(long="x = 1\n" * 401, longer="x = 1\n" * 501, reasoned="x = 1\n" * 500, short="x = 1\n" * 400)
    allowed = {"reasoned.py": "one table", "longer.py": "no reason is enough", "short.py": "was longer"}
    faults = rules.long_files(library, allowed)
    assert [fault.split(":")[0] for fault in faults] == ["long.py", "longer.py", "short.py"]


def test_a_long_function_is_found_and_its_docstring_is_free() -> None:
    body = "    x = 1\n" * 59
    library = tree(
        fits=f'def f():\n    """A\n\n    docstring.\n    """\n{body}',
        nested=f"class A:\n    class B:\n        async def f(self):\n{textwrap.indent(body, '    ' * 2)}            y = 1\n",
    )
    (fault,) = rules.long_functions(library)
    assert fault.startswith("nested.py:3: A.B.f has 61 lines")


def test_a_wide_function_is_found_unless_it_is_a_record_or_has_a_reason() -> None:
    library = tree(
        wide="""\
        class Record:
            def __init__(self, a, b, *, c, d, e, f, g, h, i): ...
            def seven(self, a, b, c, d, *, e, f, g): ...
            def eight(self, a, /, b, *args, c, d, e, f, **kwargs): ...
            def __call__(self, a, b, c, d, e, f, g, h): ...
        class Positional:
            def __init__(self, a, b, c, d, e, f, g, h): ...
        """
    )
    allowed = {"wide.py:Record.__call__": "a protocol of others", "wide.py:Record.seven": "was wider"}
    eight, init, stale = rules.wide_functions(library, allowed)
    assert eight.startswith("wide.py:4: Record.eight takes 8 parameters")
    assert init.startswith("wide.py:7: Positional.__init__ takes 8 parameters")
    assert stale.startswith("wide.py:Record.seven: ")


@pytest.mark.parametrize(
    "text",
    [
        "import asyncio\nasyncio.create_task(f())",
        "import asyncio as aio\naio.gather(f())",
        "from asyncio import wait_for",
        "def f():\n    from asyncio import ensure_future as go",
        "import asyncio\nasyncio.get_running_loop().create_task(f())",
        "import asyncio\nasync def f():\n    async with asyncio.timeout(1): ...",
    ],
)
def test_a_task_without_an_owner_is_found(text: str) -> None:
    (fault,) = {fault.split(": ")[0] for fault in rules.loose_tasks(tree(loop__driver=text), {})}
    assert fault.startswith("loop/driver.py:")
    assert rules.loose_tasks(tree(loop__driver=text), {"loop/driver.py": "a reason"}) == []


def test_an_owned_task_passes_and_a_reason_does_not_outlive_its_task() -> None:
    library = tree(loop__driver="import anyio, asyncio\nanyio.create_task_group()\nasyncio.Queue()\nevent.wait()")
    assert rules.loose_tasks(library, {}) == []
    (stale,) = rules.loose_tasks(library, {"loop/driver.py": "a reason"})
    assert "take its row out" in stale


@pytest.mark.parametrize(
    "kind", ["", " BaseException", " (ValueError, asyncio.CancelledError)", " get_cancelled_exc_class()"]
)
def test_a_swallowed_cancellation_is_found(kind: str) -> None:
    swallowed = tree(loop__driver=f"try:\n    f()\nexcept{kind}:\n    log()")
    (fault,) = rules.swallowed_cancellations(swallowed, {})
    assert fault.startswith("loop/driver.py:3: ")
    assert rules.swallowed_cancellations(swallowed, {"loop/driver.py": "a reason"}) == []
    passed = tree(loop__driver=f"try:\n    f()\nexcept Exception:\n    log()\nexcept{kind}:\n    log()\n    raise")
    assert rules.swallowed_cancellations(passed, {}) == []


@pytest.mark.parametrize("scope", ["anyio.create_task_group()", "move_on_after(1) as s", "x, anyio.CancelScope()"])
def test_a_yield_inside_a_scope_is_found(scope: str) -> None:
    text = "{decorator}\nasync def f():\n    async with {scope}:\n        for x in y:\n            yield x"
    (fault,) = rules.yields_in_scopes(tree(loop__driver=text.format(scope=scope, decorator="")))
    assert fault.startswith("loop/driver.py:5: f yields inside ")
    manager = text.format(scope=scope, decorator="@contextlib.asynccontextmanager")
    assert rules.yields_in_scopes(tree(loop__driver=manager)) == []


def test_a_yield_beside_a_scope_passes() -> None:
    text = """\
    async def f():
        async with create_task_group() as group:
            async def inner():
                yield 1
        async with aclosing(g()):
            yield 2
    """
    assert rules.yields_in_scopes(tree(loop__driver=text)) == []


def test_a_print_is_found_outside_the_command() -> None:
    library = tree(loop__driver="def f():\n    print('x')", cli__ask="print('x')", wire__sse="log.print('x')")
    (fault,) = rules.prints(library, ["cli"])
    assert fault.startswith("loop/driver.py:2: ")


def test_a_room_without_a_purpose_is_found() -> None:
    library = tree(face='"""The face."""', loop__INIT='"""The song."""', tools__INIT="x = 1", wire__deep__sse="")
    faults = rules.rooms_without_purpose(library)
    assert [fault.split(":")[0] for fault in faults] == ["wire/", "wire/deep/", "tools/__init__.py"]


def test_a_package_is_read_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "types").mkdir()
    (tmp_path / "types" / "__init__.py").write_text("from ..loop import driver\n")
    (tmp_path / "__init__.py").write_text("")
    library = Tree.read(tmp_path)
    assert sorted(library.modules) == ["antiphon", "antiphon.types"]
    (fault,) = rules.imports_that_climb(library, ROWS)
    assert fault.startswith("types/__init__.py:1: 'types' imports 'antiphon.loop' but may import only errors; ")
