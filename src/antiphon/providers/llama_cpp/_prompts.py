"""The texts that the small model goes on with. What never changes stands first, so that its tokens are kept.

The model is a base model: it continues patterns. One decision per prompt, plain text, demonstrations from a world
(garden, pets, books) that is not the user's. A demonstration teaches the form and, more than is wanted, the content:
keep them few, short and different from each other.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from antiphon.providers.llama_cpp._asker import Prompt, Slot
from antiphon.providers.llama_cpp._shape import Shape

__all__ = [
    "NOTHING_ASKED",
    "answer_prompt",
    "arguments_prompt",
    "choice_prefix",
    "choice_prompt",
    "formula_prompt",
    "talk_prompt",
]

NOTHING_ASKED: Final = ("N/A", "Please help me.", "Do it", "Something")
"""Questions without content: what the model prefers after them it prefers for no reason."""

_SMALL_TALK: Final = (
    "Hi, nice to meet you",
    "What is your name?",
    "Thanks a lot",
    "Tell me something interesting",
)

_CALLS: Final = """\
Function: water_plants(room) - Water the plants in a room.
Text: The roses in the living room are dry
Call: water_plants(room="living room")

Function: open_window(room) - Open a window.
Text: It is too warm
Call: open_window()

Function: tell(person, message) - Tell something to a person.
Text: Please tell my aunt Clara that the train was early today
Call: tell(person="Clara", message="the train was early today")

Function: order_pizza(kind, count, delivery) - Order pizza.
Text: Get us 3 large margheritas and bring them to my door
Call: order_pizza(kind="large margheritas", count=3, delivery=true)

Function: lend_book(title, author) - Lend a book.
Text: Could I have The Old Man and the Sea?
Call: lend_book(title="The Old Man and the Sea")

Function: write_diary(entry) - Write into the diary.
Text: Put into my diary that we saw two young foxes
Call: write_diary(entry="we saw two young foxes")

Function: paint(thing, colour) - Paint a thing in a colour.
Text: The fence next to our garden should be green
Call: paint(thing="fence", colour="green")

Function: feed(animal, food) - Feed an animal.
Text: Is the old dog of my uncle hungry?
Call: feed(animal="old dog of my uncle")

"""

_FORMULAS: Final = """\
Words: the sum of 7 and 5
Sum: 7 + 5

Words: 20 minus 3.5
Sum: 20 - 3.5

Words: how much is 8 times 6
Sum: 8 * 6

Words: divide 81 by 9
Sum: 81 / 9

Words: 2 plus 4 plus 11
Sum: 2 + 4 + 11

Words: take 3 away from 10
Sum: 10 - 3

Words: 15 percent of 60
Sum: 15 * 60 / 100

Words: 33 and 6 together
Sum: 33 + 6

"""

_ANSWERS: Final = """\
Question: How far is it to the lake?
Result: 3.5 km
Answer: It is 3.5 km.

Question: Who is in the garden?
Result: Emma, Paul, Rex
Answer: In the garden: Emma, Paul, Rex.

Question: What is the height of the old tower?
Result: 61
Answer: The height of the old tower is 61.

Question: Paint the fence green
Result: finished
Answer: Done: finished.

Question: Which songs do you have by Nina?
Result: Blue, Hello
Answer: Songs by Nina: Blue, Hello.

"""

_OPENING: Final = "A conversation between a person and a friendly assistant. The assistant gives short answers."
_TALK: Final = """\
Person: What is your name?
Assistant: I am a small language model that runs on this computer.

Person: The meal was good
Assistant: I am glad that you liked it.

Person: It is raining and I am cold
Assistant: That is a pity. A cup of hot tea would help.

Person: What is the capital of Spain?
Assistant: The capital of Spain is Madrid.

Person: Thanks a lot
Assistant: You are welcome!

Person: Good day
Assistant: Good day! What can I do for you?

"""


def choice_prefix(shapes: Sequence[Shape], talk: str) -> str:
    """What stands before every question for these tools: each tool's sentence as a request, between small talk.

    `talk` is the name of the pseudo tool that answers without a tool.
    """
    lines = [(line, talk) for line in _SMALL_TALK]
    pairs = [*lines[:2], *[(shape.sentence, shape.name) for shape in shapes], *lines[2:]]
    return "".join([f"User: {request}\nCall: {name}()\n\n" for request, name in pairs])


def choice_prompt(prefix: str, question: str) -> Prompt:
    """Goes on with the name of a tool, after a blank."""
    return Prompt(Slot.CHOICE, prefix, f"User: {question}\nCall:")


def arguments_prompt(shape: Shape, question: str) -> Prompt:
    """Goes on with `parameter=value`, and so forth, and a closing bracket."""
    function = f"{shape.signature} - {shape.sentence}."
    return Prompt(Slot.ARGUMENTS, _CALLS, f"Function: {function}\nText: {question}\nCall: {shape.name}(")


def formula_prompt(question: str) -> Prompt:
    """Goes on with an arithmetic expression, after a blank."""
    return Prompt(Slot.FORMULA, _FORMULAS, f"Words: {question.rstrip('.?! ')}\nSum:")


def answer_prompt(question: str, result: str) -> Prompt:
    """Goes on with the beginning of a sentence that tells the result, after a blank."""
    return Prompt(Slot.ANSWER, _ANSWERS, f"Question: {question}\nResult: {result}\nAnswer:")


def talk_prompt(question: str, history: Iterable[tuple[str, str]], instructions: str) -> Prompt:
    """Goes on with what an assistant would say, in one line, after a blank.

    Instructions stand behind the opening sentence; a base model takes at most a tone from them.
    """
    told = f" {instructions}" if instructions else ""
    said = "".join([f"Person: {ask}\nAssistant: {answer}\n\n" for ask, answer in history])
    return Prompt(Slot.TALK, f"{_OPENING}{told}\n\n{_TALK}", f"{said}Person: {question}\nAssistant:")
