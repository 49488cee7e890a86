"""The small model's way of calling tools, without a model: arguments, answers, turns.

Where the model would have to decide, a stand-in says what the test gave it. What the real model decides is in
`test_llama_local.py`.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.providers.llama_cpp._answer import answer, excerpt, plain_result
from antiphon.providers.llama_cpp._arguments import Arguments
from antiphon.providers.llama_cpp._asker import Asker
from antiphon.providers.llama_cpp._shape import shape_of
from antiphon.providers.llama_cpp.small import Called, Ended, Said, SmallModel, Turn
from antiphon.types.request import ToolSpec

from .llama_stand_in import FIND, LAMP, MOVE, PLAN, READ, SEND, TEXT, WHOLE, Completions, allows, tool

pytestmark = pytest.mark.anyio


async def arguments(spec: ToolSpec, question: str, *texts: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The arguments when the model says these texts, and what it was asked."""
    model = Completions(*texts)
    found = await Arguments(Asker(model), shape_of(spec), question).fill()
    return found, model.bodies


# Arguments


async def test_what_is_plain_is_not_asked() -> None:
    found, asked = await arguments(READ, "Show lines 10 to 20 of src/a.py")
    assert found == {"path": "src/a.py", "start": 10, "end": 20}
    assert asked == []


async def test_numbers_go_to_the_parameter_whose_name_is_beside_them() -> None:
    dice = tool("dice", "Roll.", ("sides",), sides=WHOLE, count=WHOLE)
    assert (await arguments(dice, "roll 3 with 6 sides"))[0] == {"sides": 6, "count": 3}


async def test_an_integer_takes_no_fraction() -> None:
    found, asked = await arguments(tool("wait", "Wait.", ("minutes",), minutes=WHOLE), "wait 2.5", "5")
    assert found == {"minutes": 5}
    assert allows(asked[0]["grammar"], "17")


async def test_a_number_that_is_needed_as_text_is_left_to_it() -> None:
    order = tool("order", "Look up an order.", ("code",), code=TEXT, limit=WHOLE)
    found, _ = await arguments(order, "look up order 4711", '"4711"')
    assert found == {"code": "4711"}


async def test_a_named_choice_is_taken_and_its_word_is_used_up() -> None:
    found, asked = await arguments(PLAN, "Party with Ann on friday", '"Party with Ann"')
    assert found == {"title": "Party with Ann", "day": "friday"}
    assert not allows(asked[0]["grammar"], '"friday"')


async def test_a_choice_that_is_not_named_is_the_models_if_it_is_required() -> None:
    found, asked = await arguments(PLAN, "a party", '"a party"', '"monday"')
    assert found["day"] == "monday"
    assert allows(asked[1]["grammar"], '"friday"')
    assert not allows(asked[1]["grammar"], '"sunday"')


async def test_quotations_are_copied_whole() -> None:
    assert (await arguments(FIND, 'Find "def x" in src'))[0] == {"pattern": "def x", "path": "src"}


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("find TODO in src", "src"),
        ("find TODO in the docs folder", "docs"),
        ("find TODO in lib/a.py", "lib/a.py"),
        ("find TODO in the files", None),
        ("find TODO", None),
    ],
)
async def test_an_optional_path_is_told_by_a_cue(question: str, path: str | None) -> None:
    found, _ = await arguments(FIND, question, '"TODO"')
    assert found == {"pattern": "TODO"} | ({} if path is None else {"path": path})


async def test_an_optional_text_without_a_cue_is_left_out() -> None:
    clock = tool("clock", "Tell the time.", zone=TEXT)
    assert (await arguments(clock, "what time is it?"))[0] == {}
    assert (await arguments(clock, "time in Oslo?", '"Oslo"'))[0] == {"zone": "Oslo"}


@pytest.mark.parametrize(("question", "on"), [("lamp on", True), ("switch the lamp off", False), ("no lamp", False)])
async def test_a_truth_is_told_by_its_negation(question: str, on: bool) -> None:
    assert (await arguments(LAMP, question, '"hall"'))[0]["on"] is on


@pytest.mark.parametrize(
    "question",
    ["Tell Ben that the shop is closed", "Send Ben a message: the shop is closed.", "Let Ben know the shop is closed"],
)
async def test_what_is_reported_is_copied_whole(question: str) -> None:
    found, _ = await arguments(SEND, question, '"Ben"')
    assert found == {"to": "Ben", "text": "the shop is closed"}


async def test_a_pair_has_its_sides_of_the_word_between() -> None:
    found, asked = await arguments(MOVE, "rename tom to jerry", '"tom"', '"jerry"')
    assert found == {"old_name": "tom", "new_name": "jerry"}
    assert not allows(asked[0]["grammar"], '"jerry"')
    assert not allows(asked[1]["grammar"], '"tom"')


async def test_a_formula_is_copied_or_made_of_the_numbers_and_the_operation() -> None:
    reckon = tool("reckon", "Reckon.", ("expression",), expression=TEXT)
    assert (await arguments(reckon, "what is 12 * (3 + 4)?"))[0] == {"expression": "12 * (3 + 4)"}
    found, asked = await arguments(reckon, "17 plus 25", " 17 + 25\n")
    assert found == {"expression": "17 + 25"}
    assert allows(asked[0]["grammar"], " 25 + 17\n")
    assert not allows(asked[0]["grammar"], " 17 * 25\n")
    assert not allows(asked[0]["grammar"], " 17 + 26\n")


async def test_a_value_that_was_cut_off_is_left_out() -> None:
    """Half a JSON text is not an argument."""
    assert (await arguments(SEND, "say hello", '"half', '"hello"'))[0] == {"text": "hello"}


@given(st.text(max_size=80))
async def test_any_question_gives_arguments_that_are_json(question: str) -> None:
    for spec in (SEND, READ, FIND, LAMP, PLAN, MOVE):
        found, _ = await arguments(spec, question, *['"x"'] * 4)
        assert set(found) <= set(spec.parameters["properties"])
        json.dumps(found)


# Answers


async def told(question: str, *results: tuple[str, bool], lead: str = " It is ") -> str:
    return "".join([piece async for piece in answer(Asker(Completions(lead)), question, results)])


async def test_a_result_is_quoted_behind_the_models_words() -> None:
    assert await told("how warm?", ("6 °C", False)) == "It is 6 °C."
    assert await told("where?", ("src/", False), lead=" src: ") == "src: src/"
    assert await told("what files?", ("a.py\nb.py", False), lead=" files: ") == "files:\na.py\nb.py"


async def test_an_error_is_told_and_a_mere_ok_is_done() -> None:
    assert await told("open x", ('<tool_error name="open">no &#x27;x&#x27; here</tool_error>', True)) == (
        "That did not work: no 'x' here."
    )
    assert await told("do it", ('{"ok": true}', False)) == await told("do it", ("", False)) == "Done."


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ('["a", "b", 3]', "a, b, 3"),
        ('{"status": "shipped", "days": 2}', "status: shipped, days: 2"),
        ('[{"a": 1}, {"a": 2}]', "a: 1\na: 2"),
        ('"plain"', "plain"),
        ("{not json", "{not json"),
        ("", ""),
    ],
)
def test_json_is_spoken(text: str, spoken: str) -> None:
    assert plain_result(text) == spoken


def test_of_a_long_text_the_sentences_that_know_the_question_are_quoted() -> None:
    text = "It is a server. It listens on port 8080. " + " ".join([f"Option {i} is odd." for i in range(90)])
    assert excerpt("Which port does it listen on?", text) == "It listens on port 8080. …"
    assert excerpt("Summarize it", text).startswith("It is a server. It listens on port 8080. Option 0")
    assert len(excerpt("Summarize it", text)) < 600


# Turns


async def steps(model: Completions, turn: Turn) -> list[Said | Called | Ended]:
    return [step async for step in SmallModel(model).reply(turn)]


async def test_a_turn_calls_a_tool() -> None:
    model = Completions(likely={" find": -0.1, " chat": -5.0, " z": -9.0})
    called, ended = await steps(model, Turn(question='Find "x y"', tools=(FIND,)))
    assert called == Called("find", {"pattern": "x y"})
    assert isinstance(ended, Ended)
    assert (ended.usage.input, ended.usage.output, ended.usage.cache_read) == (
        50,
        10,
        40,
    )  # five requests for the choice


async def test_with_a_result_the_turn_answers() -> None:
    said = await steps(Completions(" It is "), Turn(question="q", tools=(FIND,), results=(("7", False),)))
    assert "".join([step.text for step in said if isinstance(step, Said)]) == "It is 7."


async def test_the_choice_of_the_request_is_obeyed() -> None:
    likely = {" chat": -0.1, " find": -8.0, " z": -9.0}
    required = await steps(
        Completions('"hello"', likely=likely), Turn(question="hello", tools=(FIND,), choice="required")
    )
    assert isinstance(required[0], Called)
    named = await steps(Completions('"hello"', '"you"'), Turn(question="hello you", tools=(FIND, SEND), choice="send"))
    assert isinstance(named[0], Called)
    assert named[0].name == "send"
    none = await steps(Completions(" Hi."), Turn(question='Find "x"', tools=(FIND,), choice="none"))
    assert [step for step in none if isinstance(step, Said)] == [Said("Hi.")]


async def test_what_it_can_do_is_told_by_the_tools_themselves() -> None:
    said = await steps(Completions(), Turn(question="What can you do?", tools=(FIND, LAMP), choice="none"))
    assert said[0] == Said("I can do this: find a text in the files; switch a lamp.")
