"""The corpus of odd replies, played through a real socket into our own models, however the bytes are cut."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from antiphon.testing.quirks import FORMATS, Quirk, differences, load, model_for, play, serving

pytestmark = pytest.mark.anyio

QUIRKS = load()
EACH = pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: f"{quirk.id}-{quirk.name}")


def cut(body: bytes, seed: object) -> list[bytes]:
    """The same bytes in pieces of one to some thirty."""
    random, pieces = Random(str(seed)), []
    while body:
        size = random.choice((1, 2, 3, 7, 31))
        pieces.append(body[:size])
        body = body[size:]
    return pieces


def report(found: Sequence[str]) -> str:
    return "\n".join(found)


@EACH
async def test_what_comes_out_is_what_must(quirk: Quirk) -> None:
    found = differences(quirk, await play(quirk))
    assert not found, report(found)


@EACH
async def test_the_same_comes_out_however_the_bytes_are_cut(quirk: Quirk) -> None:
    for seed in range(2):
        found = differences(quirk, await play(quirk, cut(b"".join(quirk.body()), f"{quirk.name} {seed}")))
        assert not found, report(found)


async def test_every_report_of_streams_is_here_in_every_format_that_can_have_it() -> None:
    """The letters are those of the reports: assembling, calls in text, reasoning, framing, endings."""
    ids = {quirk.id for quirk in QUIRKS}
    wanted = [*(f"A{number}" for number in range(1, 21) if number != 15), *(f"B{number}" for number in range(1, 5))]
    wanted += ["C1", "C2", "C3", "C4", "C6", "C7", *(f"D{number}" for number in range(1, 10)), "E1", "E2", "E3", "E4"]
    assert set(wanted) <= ids
    assert Counter(quirk.format for quirk in QUIRKS).keys() == set(FORMATS)


async def test_names_are_unique_so_that_a_failure_names_one() -> None:
    names = Counter((quirk.id, quirk.name) for quirk in QUIRKS)
    assert max(names.values()) == 1


async def test_quirks_are_found_by_their_id_and_their_format() -> None:
    assert {quirk.id for quirk in load(id="A3")} == {"A3"}
    assert {quirk.format for quirk in load(format="gemini")} == {"gemini"}


async def test_what_comes_out_otherwise_is_told() -> None:
    """A player that never complains would prove nothing."""
    odd, other = load(id="A3")[0], load(id="D8")[0]
    played = await play(other)
    found = differences(odd, played)
    assert any(each.startswith("calls: ") for each in found)
    assert any(each.startswith("text: ") for each in found)
    assert differences(load(id="D6")[0], played)


async def test_any_client_may_ask_the_server() -> None:
    """The corpus is for other engines too: they only need the address."""
    quirk = load(id="A1")[0]
    async with serving(quirk) as url:
        model = model_for(quirk, url)
        assert url.startswith("http://127.0.0.1:")
        assert model is not None
