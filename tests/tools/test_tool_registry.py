"""Tools that come and go under an agent that stays."""

import threading

import pytest

from antiphon.errors import UsageError
from antiphon.tools import Tool, ToolRegistry


def make(name: str) -> Tool:
    return Tool.from_schema(name, "", {})


@pytest.mark.parity("A3")
def test_tools_are_kept_in_the_order_of_their_registration() -> None:
    """The order is part of what a provider caches."""
    a, b, c = make("a"), make("b"), make("c")
    registry = ToolRegistry([b, a])
    registry.register(c)
    assert list(registry) == [b, a, c]
    assert registry.snapshot() == (b, a, c)
    assert len(registry) == 3
    assert "a" in registry
    assert "x" not in registry
    assert registry.get("a") is a
    assert registry.get("x") is None
    assert repr(registry) == "ToolRegistry([Tool('b'), Tool('a'), Tool('c')])"


@pytest.mark.parity("A3")
def test_a_snapshot_does_not_change() -> None:
    """A run takes its tools when it begins."""
    registry = ToolRegistry([make("a")])
    before = registry.snapshot()
    registry.register(make("b"))
    registry.unregister("a")
    assert [tool.name for tool in before] == ["a"]
    assert [tool.name for tool in registry] == ["b"]


def test_a_taken_name_is_refused_unless_it_is_meant() -> None:
    """Two tools of one name are nearly always a mistake; one that takes the place keeps the order."""
    registry = ToolRegistry([make("a"), make("b")])
    with pytest.raises(UsageError, match=r"^a tool named 'a' is registered already; rename one, or say replace=True$"):
        registry.register(make("a"))
    new = make("a")
    registry.register(new, replace=True)
    registry.register(make("c"), replace=True)
    assert [tool.name for tool in registry] == ["a", "b", "c"]
    assert registry.get("a") is new
    with pytest.raises(UsageError, match="'a' is registered already"):
        ToolRegistry([make("a"), make("a")])


def test_taking_away_what_is_not_there_is_an_error() -> None:
    """It is a misspelt name, and the sentence knows the right one."""
    registry = ToolRegistry([make("search"), make("write")])
    with pytest.raises(UsageError, match=r"^no tool named 'serch' is registered; did you mean 'search'\?$"):
        registry.unregister("serch")
    with pytest.raises(UsageError, match=r"known are \['search', 'write'\]"):
        registry.unregister("x")
    assert registry.unregister("search").name == "search"


def test_only_tools_are_registered() -> None:
    """A plain function is one decorator away."""
    with pytest.raises(UsageError, match="is no tool; decorate the function with @tool"):
        ToolRegistry([print])  # pyright: ignore[reportArgumentType] - the rule under test


def test_threads_may_register_at_once() -> None:
    """Servers announce their tools whenever they like."""
    registry = ToolRegistry()

    def work(prefix: str) -> None:
        for number in range(50):
            registry.register(make(f"{prefix}{number}"))
            list(registry)
            if number % 2:
                registry.unregister(f"{prefix}{number}")

    threads = [threading.Thread(target=work, args=(prefix,)) for prefix in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registry) == 4 * 25
