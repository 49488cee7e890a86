"""What a vendor sees of a transcript that another model began, or that was cut off."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from antiphon.providers.anthropic.encode import AnthropicEncoder
from antiphon.providers.call_ids import IdRule, NameRule
from antiphon.providers.gemini.encode import GeminiEncoder
from antiphon.providers.history import HistoryRules, visible_messages
from antiphon.providers.openai_chat.encode import ChatEncoder
from antiphon.providers.openai_chat.profiles import PROFILES
from antiphon.providers.openai_responses.encode import ResponsesEncoder
from antiphon.types.content import File, Image, Part, Text, Thinking, ToolCall, Unknown
from antiphon.types.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from antiphon.types.request import ModelInfo, ModelRequest

HOME, ABROAD = "prov:m1", "prov2:m2"
RULES = HistoryRules(origin=HOME, foreign="text")
MARKED = "<earlier_reasoning>\nwhy\n</earlier_reasoning>"


def thought(origin: str | None = HOME, **more: Any) -> Thinking:
    return Thinking(**{"text": "why", "signature": "s", "origin": origin, **more})


def reply(*parts: Part, origin: str = HOME, **more: Any) -> AssistantMessage:
    provider, _, model = origin.partition(":")
    return AssistantMessage(parts=parts, provider=provider, model=model, **more)


def seen(*parts: Part, rules: HistoryRules = RULES, **more: Any) -> list[Part]:
    """The parts of one reply as the vendor sees them."""
    [message] = visible_messages([reply(*parts, **more)], rules)
    return list(message.parts)


class TestThoughts:
    @pytest.mark.parametrize(
        ("part", "rules", "told"),
        [
            pytest.param(thought(), RULES, [thought()], id="signed by this model"),
            pytest.param(thought(text=""), RULES, [thought(text="")], id="signed, without text"),
            pytest.param(thought(redacted=True), RULES, [thought(redacted=True)], id="redacted, of this model"),
            pytest.param(thought(signature=None), RULES, [], id="unsigned, of this model"),
            pytest.param(thought(ABROAD), RULES, [Text(MARKED)], id="another model's, readable"),
            pytest.param(thought("prov2:m1"), RULES, [Text(MARKED)], id="another provider's, same model"),
            pytest.param(thought(None), RULES, [Text(MARKED)], id="nobody's, readable"),
            pytest.param(thought(ABROAD, redacted=True), RULES, [], id="another model's, redacted"),
            pytest.param(thought(ABROAD, text=" \n"), RULES, [], id="another model's, empty"),
            pytest.param(thought(ABROAD), HistoryRules(origin=HOME), [], id="left out by rule"),
            pytest.param(thought(), replace(RULES, thoughts="never"), [], id="never"),
            pytest.param(
                thought("prov:m2", signature=None),
                replace(RULES, thoughts="readable"),
                [thought("prov:m2", signature=None)],
                id="readable, of this provider",
            ),
            pytest.param(
                thought(ABROAD), replace(RULES, thoughts="readable"), [Text(MARKED)], id="of another provider"
            ),
            pytest.param(thought(ABROAD), HistoryRules(origin=HOME, gaps=True), [Thinking()], id="leaves a gap"),
        ],
    )
    def test_c04_c05_a_thought_goes_back_to_its_origin_and_is_text_or_nothing_elsewhere(
        self, part: Thinking, rules: HistoryRules, told: list[Part]
    ) -> None:
        """A signature is good for the model that gave it; one that is made up, or somebody else's, is refused for ever."""
        assert seen(part, rules=rules) == told

    @pytest.mark.parametrize("part", [thought(), thought(signature=None), thought(ABROAD)])
    def test_c06_thoughts_of_a_reply_that_was_cut_off_are_for_readers_alone(self, part: Thinking) -> None:
        assert seen(part, Text("half"), partial=True) == [Text("half")]

    def test_a_thought_that_is_told_as_text_stands_apart_from_the_text_around_it(self) -> None:
        """Some APIs join the texts of a reply."""
        parts = seen(Text("a"), thought(ABROAD), Text("b"), origin=ABROAD)
        assert parts == [Text("a"), Text(f"\n\n{MARKED}\n\n"), Text("b")]


class TestSignaturesAndOpaqueData:
    def test_a_texts_signature_goes_back_to_its_origin(self) -> None:
        named = json.dumps({"origin": HOME, "id": "x"})
        assert seen(Text("a", "ts")) == [Text("a", "ts")]
        assert seen(Text("a", "ts"), origin=ABROAD) == [Text("a")]
        assert seen(Text("a", named), origin=ABROAD) == [Text("a", named)]
        assert seen(Text("a", json.dumps({"origin": ABROAD}))) == [Text("a")]

    @pytest.mark.parametrize(
        ("opaque", "origin", "kept"),
        [
            ({"origin": HOME, "sig": "g"}, ABROAD, True),
            ({"origin": ABROAD, "sig": "g"}, HOME, False),
            ({"sig": "g"}, HOME, True),
            ({"sig": "g"}, ABROAD, False),
        ],
    )
    def test_c07_what_is_attached_to_a_call_goes_back_to_its_origin(
        self, opaque: dict[str, Any], origin: str, *, kept: bool
    ) -> None:
        """It names its origin itself, or has the reply's."""
        [call] = seen(ToolCall(id="c", name="f", opaque=opaque), origin=origin)
        assert isinstance(call, ToolCall)
        assert call.opaque == (opaque if kept else None)


class TestIdsAndNames:
    WORD = replace(RULES, ids=IdRule(unique=True), names=NameRule())

    def exchange(self, call_id: str, name: str = "f") -> list[Message]:
        result = ToolResultMessage(call_id=call_id, tool_name=name, parts=(Text("r"),))
        return [reply(ToolCall(id=call_id, name=name)), result]

    def ids(self, messages: list[Message], rules: HistoryRules) -> list[str]:
        """The ids of calls and results, in order."""
        told = visible_messages(messages, rules)
        return [
            each
            for message in told
            for each in (
                [message.call_id]
                if isinstance(message, ToolResultMessage)
                else [call.id for call in message.calls]
                if isinstance(message, AssistantMessage)
                else []
            )
        ]

    @pytest.mark.parametrize("call_id", ["id|1", "functions.f:0", "x" * 65, "", "ü"])
    def test_an_id_that_would_be_refused_is_rewritten_alike_for_call_and_result(self, call_id: str) -> None:
        messages = self.exchange(call_id)
        own, answered = self.ids(messages, self.WORD)
        assert own == answered != call_id
        assert 1 <= len(own) <= 64
        assert self.ids([*messages, UserMessage.of("q")], self.WORD) == [own, answered]

    def test_an_id_that_is_taken_is_left_alone(self) -> None:
        assert self.ids(self.exchange("call_1"), self.WORD) == ["call_1", "call_1"]
        assert self.ids(self.exchange("id|1"), RULES) == ["id|1", "id|1"]

    def test_an_id_of_an_earlier_reply_is_replaced_where_ids_must_be_unique(self) -> None:
        """A transcript keeps ids apart within a reply alone; the engine's own count from zero in every run."""
        messages = [*self.exchange("call-0"), UserMessage.of("q"), *self.exchange("call-0")]
        first, _, second, answered = self.ids(messages, self.WORD)
        assert first == "call-0" != second == answered
        assert self.ids([*messages, UserMessage.of("x")], self.WORD)[2] == second
        assert set(self.ids(messages, replace(self.WORD, ids=IdRule()))) == {"call-0"}

    @pytest.mark.parametrize(
        ("rule", "longest"), [(IdRule(longest=40), 40), (IdRule(longest=9, style="nine"), 9), (IdRule(), 64)]
    )
    def test_rewritten_ids_keep_to_their_rule_and_stay_apart(self, rule: IdRule, longest: int) -> None:
        rewritten = [rule.taken(f"odd.{number}" * 20) for number in range(200)]
        assert len(set(rewritten)) == 200
        assert all(0 < len(each) <= longest for each in rewritten)
        assert [rule.taken(each) for each in rewritten] == rewritten

    @pytest.mark.parametrize(("name", "told"), [("f", "f"), ("fs.read", "fs_read"), ("", "_"), ("x" * 70, "x" * 64)])
    def test_a_made_up_name_does_not_spoil_the_request(self, name: str, told: str) -> None:
        call, result = visible_messages(self.exchange("c", name), self.WORD)
        assert isinstance(call, AssistantMessage)
        assert isinstance(result, ToolResultMessage)
        assert [call.calls[0].name, result.tool_name] == [told, told]


class TestMedia:
    BLIND = replace(RULES, modalities=("text",))

    def test_a_model_that_sees_no_pictures_is_told_that_there_is_one(self) -> None:
        parts = (
            Text("see"),
            Image("AAAA", "image/png"),
            File("AAAA", "image/jpeg", "a.jpg"),
            File("AAAA", name="a.pdf"),
        )
        user, result = visible_messages(
            [UserMessage(parts=parts), ToolResultMessage(call_id="c", tool_name="f", parts=parts)], self.BLIND
        )
        assert user.parts == result.parts
        assert user.parts == (
            Text("see"),
            Text("[image image/png: not shown, this model sees no pictures]"),
            Text("[file a.jpg image/jpeg: not shown, this model sees no pictures]"),
            File("AAAA", name="a.pdf"),
        )

    @pytest.mark.parametrize("modalities", [None, ("text", "image")])
    def test_pictures_are_shown_where_they_are_seen_or_nothing_is_known(
        self, modalities: tuple[str, ...] | None
    ) -> None:
        [message] = visible_messages([UserMessage.of(Image("AAAA"))], replace(RULES, modalities=modalities))
        assert message.parts == (Image("AAAA"),)


def test_custom_and_unknown_messages_are_for_no_model() -> None:
    messages = [CustomMessage(kind="note"), Unknown({"type": "later"}), SystemMessage.of("s"), UserMessage.of("u")]
    assert visible_messages(messages, RULES) == [SystemMessage.of("s"), UserMessage.of("u")]


def test_a_message_that_is_seen_as_it_stands_is_not_copied() -> None:
    """A thousand plain messages must not be made a second time."""
    messages = [UserMessage.of("u"), reply(Text("a")), ToolResultMessage(call_id="c", tool_name="f", parts=())]
    assert all(one is other for one, other in zip(visible_messages(messages, RULES), messages, strict=True))


# --- one transcript, four vendors

TRAVELLED: tuple[Message, ...] = (
    UserMessage.of("go", Image("iVBORw0KGgo=", "image/png")),
    reply(
        Thinking(text="let me see", signature="sig-of-elsewhere", origin=ABROAD),
        Thinking(signature="sealed", redacted=True, origin=ABROAD),
        Text("One moment.", "mark-of-elsewhere"),
        ToolCall(id="functions.look:0", name="fs.look", arguments="{", opaque={"origin": ABROAD, "secret": "s"}),
        origin=ABROAD,
    ),
    ToolResultMessage(call_id="functions.look:0", tool_name="fs.look", parts=(Text("fine"),)),
)
INFO = {"id": "m", "modalities": ("text",)}
ENCODERS = {
    "openai_chat": lambda: ChatEncoder("m", PROFILES["openai"], ModelInfo(provider="openai", **INFO)),
    "openai_responses": lambda: ResponsesEncoder("m", ModelInfo(provider="openai", **INFO)),
    "anthropic": lambda: AnthropicEncoder("m", ModelInfo(provider="anthropic", **INFO)),
    "gemini": lambda: GeminiEncoder("gemini-3-pro", ModelInfo(provider="gemini", **INFO)),
}


@pytest.mark.parity("C21")
@pytest.mark.parametrize("format_name", ENCODERS)
def test_nothing_of_another_vendor_reaches_the_wire(format_name: str) -> None:
    before = repr(TRAVELLED)
    body = ENCODERS[format_name]().encode(ModelRequest(messages=TRAVELLED)).decode()
    assert not [word for word in ("elsewhere", "sealed", "secret", "functions.look:0", "iVBOR") if word in body]
    assert "One moment." in body
    assert "image image/png: not shown" in body
    assert repr(TRAVELLED) == before


@pytest.mark.parametrize("format_name", ENCODERS)
def test_by_choice_a_thought_of_another_vendor_is_told_as_text(format_name: str) -> None:
    encoders = {
        "openai_chat": lambda: ChatEncoder("m", PROFILES["openai"], foreign_thinking="text"),
        "openai_responses": lambda: ResponsesEncoder("m", foreign_thinking="text"),
        "anthropic": lambda: AnthropicEncoder("m", foreign_thinking="text"),
        "gemini": lambda: GeminiEncoder("m", foreign_thinking="text"),
    }
    body = encoders[format_name]().encode(ModelRequest(messages=TRAVELLED)).decode()
    assert "<earlier_reasoning>\\nlet me see\\n</earlier_reasoning>" in body
