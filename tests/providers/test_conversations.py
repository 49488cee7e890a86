"""One list of conversations through every provider: what is sent, in full, and what is read, however the bytes are cut."""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from antiphon.testing.quirks.corpus import Expected, Quirk
from antiphon.testing.quirks.player import serving
from antiphon.types.content import Thinking
from antiphon.types.joiner import Joiner
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import ModelRequest

from .conversations import CONVERSATIONS, REPLY
from .dialect_pages import FORMATS, made_model, page, written

pytestmark = pytest.mark.anyio

EACH = pytest.mark.parametrize("name", FORMATS)


def recorded(name: str) -> bytes:
    """The bytes of the recorded reply. A line of the page is an event's data, or a pair with its name."""
    events = page(name)["reply"]
    named = name in {"openai_responses", "anthropic"}
    lines = [(f"event: {each['type']}\n" if named else "") + f"data: {json.dumps(each)}\n\n" for each in events]
    return "".join([*lines, "data: [DONE]\n\n" if name in {"openai_chat", "openrouter"} else ""]).encode()


def cut(body: bytes, random: Random) -> list[bytes]:
    pieces: list[bytes] = []
    while body:
        size = random.choice((1, 2, 5, 40))
        pieces.append(body[:size])
        body = body[size:]
    return pieces


async def ask(name: str, request: ModelRequest, pieces: Sequence[bytes]) -> tuple[dict[str, Any], AssistantMessage]:
    """The body that went out, and the reply that came in, through a real socket."""
    quirk = Quirk("", "", "", "openai_chat", "", Expected(), pieces=(recorded(name).decode(),))
    sent: list[dict[str, Any]] = []
    minted = iter(range(100))
    joiner = Joiner(lambda: f"minted-{next(minted)}")
    async with serving(quirk, pieces) as url:
        model = made_model(name, url)
        fields = {field: getattr(request, field) for field in request.__struct_fields__}
        async for delta in model.stream(ModelRequest(**{**fields, "on_payload": sent.append})):
            joiner.add(delta)
    return sent[0], joiner.message(provider=model.info.provider, model=model.info.id)


@EACH
async def test_every_reply_says_the_same_however_it_is_cut(name: str) -> None:
    """A thought, a text, two calls: each vendor has its own words for them, the library has one."""
    request = CONVERSATIONS["text"](AssistantMessage(parts=()))
    whole = [recorded(name)]
    replies = [
        (await ask(name, request, pieces))[1] for pieces in (whole, *(cut(whole[0], Random(seed)) for seed in range(4)))
    ]
    assert all(reply == replies[0] for reply in replies)
    thoughts = [part for part in replies[0].parts if isinstance(part, Thinking)]
    assert "".join(part.text for part in thoughts) == (REPLY["thinking"] if thoughts else "")
    assert {
        "text": replies[0].text,
        "calls": [(call.name, call.parse()) for call in replies[0].calls],
        "stop": replies[0].stop_reason,
    } == {key: value for key, value in REPLY.items() if key != "thinking"}
    assert replies[0].usage is not None
    assert (replies[0].usage.input, replies[0].usage.output) == (30, 20)


@pytest.mark.parity("C21")
@EACH
@pytest.mark.parametrize("conversation", CONVERSATIONS)
async def test_every_conversation_is_sent_as_its_page_says(name: str, conversation: str) -> None:
    """The page is the whole dialect, to be read; a change of it is a change of what the vendor sees."""
    body = recorded(name)
    _, reply = await ask(name, CONVERSATIONS["text"](AssistantMessage(parts=())), [body])
    request = CONVERSATIONS[conversation](reply)
    before = repr(request.messages)
    sent, _ = await ask(name, request, cut(body, Random(conversation)))
    assert sent == page(name)["requests"][conversation]
    assert repr(request.messages) == before


@EACH
def test_a_page_is_complete_and_written_to_be_read(name: str) -> None:
    kept = page(name)
    assert list(kept["requests"]) == list(CONVERSATIONS)
    assert max(len(line) for line in written(kept).splitlines()) < 700
