"""A transcript that grows without being copied."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.types.history import History
from antiphon.types.messages import UserMessage

often = settings(deadline=None, max_examples=200)

A, B, C, D = (UserMessage.of(letter) for letter in "abcd")


def test_a_longer_history_leaves_the_shorter_as_it_was() -> None:
    """A request in flight still holds the one that it was made from."""
    short = History([A])
    long = short.extended(B, C)
    assert short == [A]
    assert long == [A, B, C]
    assert short.extended() is short


def test_growing_copies_nothing() -> None:
    """A turn must cost what it adds, not what was said before."""
    history = History([A])
    store = history._store
    for _ in range(50):
        history = history.extended(B)
    assert history._store is store
    assert len(history) == 51


def test_two_branches_do_not_see_each_other() -> None:
    """Two runs may start from one transcript."""
    trunk = History([A])
    left = trunk.extended(B)
    right = trunk.extended(C)
    assert (trunk, left, right) == (History([A]), History([A, B]), History([A, C]))
    assert left.extended(D) == [A, B, D]
    assert right.extended(D) == [A, C, D]


def test_a_history_knows_what_it_grew_from() -> None:
    """What was encoded of the shorter one holds for the longer one."""
    trunk = History([A])
    left = trunk.extended(B)
    right = trunk.extended(C)
    assert left.grew_from(trunk)
    assert left.grew_from(left)
    assert not trunk.grew_from(left)
    assert not right.grew_from(trunk)
    assert not History([A, B]).grew_from(trunk)


def test_the_memo_belongs_to_all_that_share_a_store() -> None:
    """A branch has other messages at the same places, and its own memo."""
    trunk = History([A])
    trunk.memo["key"] = 1
    assert trunk.extended(B).memo is trunk.memo
    assert trunk.extended(C).memo == {}


def test_the_callers_list_is_copied_once() -> None:
    """What a caller appends later was not said in this run; what a run adds is not in the caller's list."""
    messages = [A]
    history = History(messages)
    messages.append(B)
    history.extended(C)
    assert history == [A]
    assert messages == [A, B]


def test_of_takes_a_history_as_it_is() -> None:
    """Only foreign lists are copied."""
    history = History([A])
    assert History.of(history) is history
    assert History.of([A]) == history
    assert History.of(iter((A, B))) == (A, B)


@given(st.lists(st.sampled_from([A, B, C, D]), max_size=6), st.integers(0, 6), st.data())
@often
def test_it_reads_as_a_tuple_does(messages: list[UserMessage], cut: int, data: st.DataObject) -> None:
    """Also when its store has grown beyond it."""
    plain = tuple(messages[:cut])
    history = History(plain)
    history.extended(*messages[cut:])
    index = data.draw(st.integers(-8, 8))
    step = st.integers(-3, 3).filter(bool) | st.none()
    piece = data.draw(st.builds(slice, st.none() | st.integers(-8, 8), st.none() | st.integers(-8, 8), step))
    assert tuple(history) == plain
    assert len(history) == len(plain)
    assert history[piece] == plain[piece]
    assert tuple(reversed(history)) == plain[::-1]
    assert [each in history for each in (A, B, C, D)] == [each in plain for each in (A, B, C, D)]
    assert history.count(A) == plain.count(A)
    if -len(plain) <= index < len(plain):
        assert history[index] == plain[index]
    else:
        with pytest.raises(IndexError, match=f"message {index} of {len(plain)}"):
            _ = history[index]


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ([A, B], True),
        ((A, B), True),
        (History([A, B]), True),
        ([A], False),
        ([B, A], False),
        ("ab", False),
        (None, False),
    ],
)
def test_equal_is_who_holds_the_same(other: Any, same: bool) -> None:
    """A test may compare with a plain list."""
    assert (History([A, B]) == other) is same
    assert (other == History([A, B])) is same


def test_it_is_no_key() -> None:
    """As with a list: what is equal to a list cannot be hashed."""
    with pytest.raises(TypeError, match="unhashable"):
        hash(History())


def test_it_says_what_it_holds() -> None:
    assert repr(History([A])) == f"History([{A!r}])"


def test_a_copy_is_equal_and_grows_by_itself() -> None:
    """Applications copy states before they try something."""
    history = History([A])
    twin = copy.deepcopy(history)
    assert twin == history
    assert twin.extended(B) == [A, B]
    assert history.extended(C) == [A, C]
