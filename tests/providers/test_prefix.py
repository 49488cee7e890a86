"""Message bytes are made once: the rules that a growing transcript and its branches keep."""

import threading
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.providers.prefix import encoded_prefix
from antiphon.types.content import Text
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, CustomMessage, Message, ToolResultMessage, UserMessage


class Encoder:
    """Encodes to a name for each message, drops custom ones, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, messages: Sequence[Message]) -> bytes:
        self.asked.append(len(messages))
        seen = [message for message in messages if not isinstance(message, CustomMessage)]
        return b",".join(repr(message.parts).encode() for message in seen)  # pyright: ignore[reportAttributeAccessIssue]


def user(text: str) -> UserMessage:
    return UserMessage.of(text)


def exchange(number: int, results: int) -> list[Message]:
    """A reply with some results behind it."""
    reply = AssistantMessage(parts=(Text(f"reply {number}"),))
    return [
        reply,
        *(ToolResultMessage(call_id=str(n), tool_name="t", parts=(Text(f"{number}.{n}"),)) for n in range(results)),
    ]


def joined(messages: Sequence[Message], encoder: Encoder, key: str = "k") -> bytes:
    return b"".join(encoded_prefix(messages, key, encoder))


def test_a_longer_history_encodes_only_what_is_new() -> None:
    encoder = Encoder()
    history = History([user("a")])
    joined(history, encoder)
    history = history.extended(*exchange(1, 2))
    joined(history, encoder)
    joined(history, encoder)
    assert encoder.asked == [1, 3]


def test_the_bytes_of_one_request_begin_the_next() -> None:
    encoder = Encoder()
    history = History([user("a")])
    former = b""
    for number in range(5):
        now = joined(history, encoder)
        assert now.startswith(former)
        assert now == Encoder()(list(history))
        former = now
        history = history.extended(*exchange(number, number % 3))


def test_a_shorter_history_of_the_same_growth_gets_its_own_bytes() -> None:
    """Two branches share what is kept; neither may see the other's messages."""
    encoder = Encoder()
    short = History([user("a")])
    long = short.extended(*exchange(1, 1), user("b"))
    joined(long, encoder)
    assert joined(short, encoder) == Encoder()(list(short))
    branch = short.extended(user("other"))
    assert joined(branch, encoder) == Encoder()(list(branch))
    assert joined(long, encoder) == Encoder()(list(long))


def test_keys_keep_apart_what_is_encoded_differently() -> None:
    history = History([user("a")])
    assert joined(history, Encoder(), "one") == joined(history, Encoder(), "two")
    assert len(history.memo) == 2


def test_a_cut_within_an_exchange_is_not_built_upon() -> None:
    """An encoder may gather what the results of one reply have to show behind the last of them."""
    encoder = Encoder()
    whole = exchange(1, 2)
    history = History([user("a"), whole[0], whole[1]])
    joined(history, encoder)
    joined(history.extended(whole[2]), encoder)
    assert encoder.asked == [3, 4]


def test_other_sequences_are_encoded_afresh() -> None:
    encoder = Encoder()
    for _ in range(2):
        joined([user("a"), user("b")], encoder)
    assert encoder.asked == [2, 2]


def test_threads_may_share_a_history() -> None:
    history = History([user("a")])
    grown = [history := history.extended(*exchange(number, 1)) for number in range(50)]
    wrong: list[History] = []

    def ask() -> None:
        for view in grown:
            if joined(view, Encoder()) != Encoder()(list(view)):
                wrong.append(view)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(0, 3)),
        st.tuples(st.just("custom"), st.just(0)),
        st.tuples(st.just("ask"), st.integers(0, 20)),
        st.tuples(st.just("branch"), st.integers(0, 20)),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_kept_bytes_are_the_bytes_of_a_fresh_encoding(steps: list[tuple[str, int]]) -> None:
    views = [History([user("start")])]
    encoder = Encoder()
    for number, (step, value) in enumerate(steps):
        view = views[value % len(views)]
        if step == "grow":
            views.append(views[-1].extended(*exchange(number, value)))
        elif step == "custom":
            views.append(views[-1].extended(CustomMessage(kind="note")))
        elif step == "branch":
            views.append(view.extended(user(f"branch {number}")))
        else:
            assert joined(view, encoder) == Encoder()(list(view)).strip(b",")
