"""How well the built-in model calls tools: 68 requests and 18 lines of small talk that no demonstration resembles.

    python benchmarks/small_model.py

The groups `files`, `home` and `office` (44 requests) were written first; what failed in them was looked at, and some of
it mended. `check`, `trip` and `desk` (24) were written last: when they were asked for the first time, 20 tools were right
and 18 with their arguments, which is what to expect of other tools. `files` and `check` have the tools of the command.

A call is right when the tool is, and right in full when the arguments are too: text is compared without case and blanks,
and an optional argument that says the tool's default counts as left out. Nothing is left to chance.
"""

import asyncio
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from antiphon.cli.workspace import workspace
from antiphon.providers.llama_cpp.provider import LlamaCppModel
from antiphon.types.content import ToolCall
from antiphon.types.messages import AssistantMessage, ToolResultMessage, UserMessage
from antiphon.types.request import ModelRequest, TextChunk, ToolSpec, WholeCall

TEXT = {"type": "string"}


def spec(name: str, description: str, properties: dict[str, Any], *required: str) -> ToolSpec:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name=name, description=description, parameters=parameters)


def said(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


FILES = tuple([tool.spec() for tool in workspace(Path(tempfile.gettempdir()))])

TOOLS: dict[str, tuple[ToolSpec, ...]] = {
    "files": FILES,
    "check": FILES,
    "home": (
        spec("get_weather", "Current weather in a city.", {"city": said("Name of the city.")}, "city"),
        spec(
            "convert_units",
            "Convert an amount from one unit to another.",
            {"amount": {"type": "number"}, "from_unit": TEXT, "to_unit": TEXT},
            "amount", "from_unit", "to_unit",
        ),
        spec(
            "send_note",
            "Send a short note to a person.",
            {"to": said("Who gets it."), "text": said("What to say.")},
            "to", "text",
        ),
        spec("stock_price", "Price of a share by its symbol or company.", {"symbol": TEXT}, "symbol"),
        spec(
            "translate",
            "Translate a word or a sentence into another language.",
            {"text": TEXT, "language": {"enum": ["french", "german", "spanish", "italian"]}},
            "text", "language",
        ),
    ),
    "office": (
        spec("get_order", "Look up an order by its number.", {"number": {"type": "integer"}}, "number"),
        spec("get_customer", "Look up a customer by name.", {"name": TEXT}, "name"),
        spec("set_lamp", "Switch a lamp on or off.", {"room": TEXT, "on": {"type": "boolean"}}, "room", "on"),
        spec(
            "create_ticket",
            "Open a support ticket.",
            {"title": TEXT, "priority": {"enum": ["low", "normal", "high"]}},
            "title",
        ),
    ),
    "trip": (
        spec(
            "search_trains",
            "Find trains between two stations.",
            {"from_station": TEXT, "to_station": TEXT, "date": TEXT},
            "from_station", "to_station",
        ),
        spec("museum_hours", "Opening hours of a museum.", {"museum": TEXT}, "museum"),
        spec(
            "rent_bike",
            "Rent bicycles for some hours.",
            {"bikes": {"type": "integer"}, "hours": {"type": "integer"}},
            "bikes", "hours",
        ),
        spec("emergency_number", "Emergency phone number of a country.", {"country": TEXT}, "country"),
    ),
    "desk": (
        spec("create_reminder", "Remind the user of something.", {"text": said("What to remember.")}, "text"),
        spec("search_contacts", "Find a contact in the address book.", {"name": TEXT}, "name"),
        spec(
            "set_status",
            "Set the status that colleagues see.",
            {"status": {"enum": ["available", "busy", "away"]}},
            "status",
        ),
        spec(
            "convert_currency",
            "Convert money from one currency to another.",
            {"amount": {"type": "number"}, "from_currency": TEXT, "to_currency": TEXT},
            "amount", "from_currency", "to_currency",
        ),
        spec("restart_service", "Restart a service on a server.", {"service": TEXT, "server": TEXT}, "service"),
    ),
}  # fmt: skip

REQUESTS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("files", "List the files in lib/utils", "list_files", {"path": "lib/utils"}),
    ("files", "What is in the docs folder?", "list_files", {"path": "docs"}),
    ("files", "Show the files here", "list_files", {}),
    ("files", "Which files are in /etc/nginx?", "list_files", {"path": "/etc/nginx"}),
    ("files", "Read README.md", "read_file", {"path": "README.md"}),
    ("files", "What does config.yaml contain?", "read_file", {"path": "config.yaml"}),
    ("files", "Show lines 10 to 20 of src/main.py", "read_file", {"path": "src/main.py", "start": 10, "end": 20}),
    ("files", "Please open pyproject.toml and tell me the version", "read_file", {"path": "pyproject.toml"}),
    ("files", "Search for TODO in src", "search_text", {"pattern": "TODO", "path": "src"}),
    ("files", "Where is the word license mentioned?", "search_text", {"pattern": "license"}),
    ("files", "Find all uses of open_socket", "search_text", {"pattern": "open_socket"}),
    ("files", 'Search the tests for "def test_login"', "search_text", {"pattern": "def test_login", "path": "tests"}),
    ("files", "What is 12 * (3 + 4)?", "calculate", {"expression": "12 * (3 + 4)"}),
    ("files", "Calculate 2.5 / 0.5", "calculate", {"expression": "2.5 / 0.5"}),
    ("files", "How much is 17 plus 25?", "calculate", {"expression": "17 + 25"}),
    ("files", "What is 13 times 9?", "calculate", {"expression": "13 * 9"}),
    ("files", "What time is it?", "current_time", {}),
    ("files", "What time is it in Asia/Tokyo?", "current_time", {"timezone": "Asia/Tokyo"}),
    ("files", "Tell me today's date", "current_time", {}),
    ("files", "Current time in UTC please", "current_time", {"timezone": "UTC"}),
    ("home", "What is the weather in Oslo?", "get_weather", {"city": "Oslo"}),
    ("home", "Will I need an umbrella in New York?", "get_weather", {"city": "New York"}),
    ("home", "How warm is it in Madrid right now?", "get_weather", {"city": "Madrid"}),
    (
        "home",
        "Convert 5 miles to kilometers",
        "convert_units",
        {"amount": 5, "from_unit": "miles", "to_unit": "kilometers"},
    ),
    (
        "home",
        "How many grams are 2.5 pounds?",
        "convert_units",
        {"amount": 2.5, "from_unit": "pounds", "to_unit": "grams"},
    ),
    (
        "home",
        "What is 30 celsius in fahrenheit?",
        "convert_units",
        {"amount": 30, "from_unit": "celsius", "to_unit": "fahrenheit"},
    ),
    ("home", "Tell Maria that I am late", "send_note", {"to": "Maria", "text": "I am late"}),
    (
        "home",
        "Send a note to Ben: the meeting is at noon",
        "send_note",
        {"to": "Ben", "text": "the meeting is at noon"},
    ),
    ("home", "Let Sam know dinner is ready", "send_note", {"to": "Sam", "text": "dinner is ready"}),
    ("home", "What is the price of AAPL?", "stock_price", {"symbol": "AAPL"}),
    ("home", "How is the Siemens share doing?", "stock_price", {"symbol": "Siemens"}),
    ("home", "Stock quote for NVDA", "stock_price", {"symbol": "NVDA"}),
    ("home", "Translate good morning into french", "translate", {"text": "good morning", "language": "french"}),
    ("home", "How do you say thank you in German?", "translate", {"text": "thank you", "language": "german"}),
    ("office", "Where is order 4711?", "get_order", {"number": 4711}),
    ("office", "Show me the details of order number 90210", "get_order", {"number": 90210}),
    ("office", "Who is the customer Jane Miller?", "get_customer", {"name": "Jane Miller"}),
    ("office", "Look up customer Rossi", "get_customer", {"name": "Rossi"}),
    ("office", "Turn on the lamp in the kitchen", "set_lamp", {"room": "kitchen", "on": True}),
    ("office", "Switch the bedroom lamp off", "set_lamp", {"room": "bedroom", "on": False}),
    ("office", "Lights out in the office", "set_lamp", {"room": "office", "on": False}),
    (
        "office",
        "Open a ticket: printer is broken, priority high",
        "create_ticket",
        {"title": "printer is broken", "priority": "high"},
    ),
    ("office", "Create a ticket for the broken heating", "create_ticket", {"title": "broken heating"}),
    ("office", "File a support request about login problems", "create_ticket", {"title": "login problems"}),
    ("check", "List what is in src/components", "list_files", {"path": "src/components"}),
    ("check", "Which files are in the current folder?", "list_files", {}),
    ("check", "Print the file LICENSE.txt", "read_file", {"path": "LICENSE.txt"}),
    ("check", "What is written in docs/intro.md?", "read_file", {"path": "docs/intro.md"}),
    ("check", "Where do we use asyncio?", "search_text", {"pattern": "asyncio"}),
    ("check", "Search for password in config/", "search_text", {"pattern": "password", "path": "config/"}),
    ("check", "What is (15 + 5) / 4?", "calculate", {"expression": "(15 + 5) / 4"}),
    ("check", "Multiply 12 by 11", "calculate", {"expression": "12 * 11"}),
    ("check", "Do you know what time it is?", "current_time", {}),
    ("check", "What is the time in Africa/Cairo?", "current_time", {"timezone": "Africa/Cairo"}),
    ("trip", "Trains from Bonn to Kassel", "search_trains", {"from_station": "Bonn", "to_station": "Kassel"}),
    (
        "trip",
        "How can I get by train from Milan to Turin?",
        "search_trains",
        {"from_station": "Milan", "to_station": "Turin"},
    ),
    ("trip", "When does the Louvre open?", "museum_hours", {"museum": "Louvre"}),
    ("trip", "Is the Science Museum open today?", "museum_hours", {"museum": "Science Museum"}),
    ("trip", "We need 4 bikes for 3 hours", "rent_bike", {"bikes": 4, "hours": 3}),
    ("trip", "Whom do I call for help in Norway?", "emergency_number", {"country": "Norway"}),
    ("desk", "Remind me to water the plants", "create_reminder", {"text": "water the plants"}),
    ("desk", "Don't let me forget the tax papers", "create_reminder", {"text": "tax papers"}),
    ("desk", "What is the phone number of Julia Stein?", "search_contacts", {"name": "Julia Stein"}),
    ("desk", "Show me as busy", "set_status", {"status": "busy"}),
    ("desk", "I am away for an hour", "set_status", {"status": "away"}),
    (
        "desk",
        "How much is 80 dollars in yen?",
        "convert_currency",
        {"amount": 80, "from_currency": "dollars", "to_currency": "yen"},
    ),
    (
        "desk",
        "Convert 15 euros to pounds",
        "convert_currency",
        {"amount": 15, "from_currency": "euros", "to_currency": "pounds"},
    ),
    ("desk", "Restart nginx", "restart_service", {"service": "nginx"}),
]

SMALL_TALK = [
    ("files", "Hi there"),
    ("files", "Who are you?"),
    ("files", "Thank you very much!"),
    ("files", "Tell me a joke"),
    ("files", "What can you do?"),
    ("home", "Good morning, how are you?"),
    ("home", "I like music"),
    ("home", "What is love?"),
    ("office", "Bye, see you tomorrow"),
    ("office", "Are you a robot?"),
    ("check", "Hello, who is there?"),
    ("check", "You are funny"),
    ("check", "Tell me about yourself"),
    ("trip", "Thanks, bye"),
    ("trip", "I love to travel"),
    ("desk", "Good afternoon"),
    ("desk", "What is your favourite food?"),
    ("desk", "Well done"),
]

RESULTS = [
    ("What is in the docs folder?", "guide.md\nimages/\nindex.md"),
    ("What is 12 * (3 + 4)?", "84"),
    ("What time is it in Asia/Tokyo?", "Monday, 2026-11-30 23:15:02 JST (UTC+09:00)"),
    ("What does config.yaml contain?", "host: 127.0.0.1\nport: 8080"),
    ("Search for TODO in src", "src/app.py:3: # TODO tidy up\nsrc/run.py:40: # TODO test"),
    ("Read README.md", "<tool_error name=\"read_file\">there is no file 'README.md'</tool_error>"),
    ("What is the weather in Oslo?", "6 °C, rain"),
    ("Convert 5 miles to kilometers", "8.05"),
    ("Tell Maria that I am late", '{"sent": true}'),
    ("Where is order 4711?", '{"status": "shipped", "carrier": "DHL"}'),
]


def alike(found: dict[str, Any], wanted: dict[str, Any], tool: ToolSpec) -> bool:
    defaults = {name: schema.get("default") for name, schema in tool.parameters["properties"].items()}
    return plain(found, defaults) == plain(wanted, defaults)


def plain(arguments: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    return {
        name: re.sub(r"\s+", "", value).lower() if isinstance(value, str) else value
        for name, value in arguments.items()
        if value != defaults.get(name)
    }


async def ask(model: LlamaCppModel, request: ModelRequest) -> tuple[WholeCall | None, str, float]:
    """The call or the text, and the seconds."""
    start, call, text = time.perf_counter(), None, ""
    async for delta in model.stream(request):
        match delta:
            case WholeCall():
                call = delta
            case TextChunk():
                text += delta.text
            case _:
                pass
    return call, text, time.perf_counter() - start


async def call_tools(model: LlamaCppModel) -> None:
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    seconds: list[float] = []
    wrong: list[str] = []
    for group, question, name, arguments in REQUESTS:
        tool = next(tool for tool in TOOLS[group] if tool.name == name)
        request = ModelRequest(messages=(UserMessage.of(question),), tools=TOOLS[group])
        call, text, took = await ask(model, request)
        seconds.append(took)
        right = call is not None and call.name == name
        given = call.arguments if call else None
        full = right and isinstance(given, dict) and alike(given, arguments, tool)
        for key in (name, f"all of {group}", "all"):
            for i, count in enumerate((True, right, full)):
                rows[key][i] += count
        if not full:
            did = f"{call.name} {call.arguments}" if call else repr(text)
            wrong.append(f"  {question!r}: {did}")
    print(f"{'tool':16}{'asked':>6}{'tool right':>12}{'and arguments':>15}")
    for key in sorted(rows, key=lambda key: key.startswith("all")):
        print(f"{key:16}{rows[key][0]:6}{rows[key][1]:12}{rows[key][2]:15}")
    print(
        f"seconds for a call: median {sorted(seconds)[len(seconds) // 2]:.2f}, longest {max(seconds):.2f} (the first)"
    )
    print("wrong:", *wrong, sep="\n")


async def talk(model: LlamaCppModel) -> None:
    lines: list[str] = []
    calls = 0
    for group, line in SMALL_TALK:
        call, text, _ = await ask(model, ModelRequest(messages=(UserMessage.of(line),), tools=TOOLS[group]))
        calls += call is not None
        lines.append(f"  {line!r}: " + (f"called {call.name}" if call else repr(text)))
    print(f"\nsmall talk: {len(lines) - calls} of {len(lines)} answered without a tool")
    print(*lines, sep="\n")


async def answer(model: LlamaCppModel) -> None:
    print("\nanswers from results")
    for question, result in RESULTS:
        call = ToolCall(id="c1", name="tool")
        messages = (
            UserMessage.of(question),
            AssistantMessage(parts=(call,), stop_reason="tool_calls"),
            ToolResultMessage(
                call_id="c1", tool_name="tool", parts=UserMessage.of(result).parts, is_error="<tool_error" in result
            ),
        )
        _, text, took = await ask(model, ModelRequest(messages=messages))
        print(f"  {question!r} ({took:.1f} s): {json.dumps(text, ensure_ascii=False)}")


async def main() -> None:
    model = LlamaCppModel()
    start = time.perf_counter()
    await model.warm()
    print(f"loaded in {time.perf_counter() - start:.1f} s\n")
    try:
        await call_tools(model)
        await talk(model)
        await answer(model)
    finally:
        await model.aclose()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
