"""A stand-in for the engine under the small model, tools to try it with, and a reader of its grammars."""

import json
import re
from collections.abc import AsyncGenerator
from typing import Any

from antiphon.types.request import ToolSpec


class Completions:
    """A stand-in for the engine: `texts` are what the model says next, one for each request."""

    def __init__(self, *texts: str, likely: dict[str, float] | None = None) -> None:
        self.texts = list(texts)
        self.likely = likely or {}
        self.bodies: list[dict[str, Any]] = []

    async def completions(
        self, body: dict[str, Any], *, keep: str | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        assert keep is not None
        assert body["prompt"].startswith(keep)
        self.bodies.append(body)
        if "n_probs" in body:
            top = [{"token": token, "logprob": weight} for token, weight in self.likely.items()]
            yield {"choices": [{"text": "?", "logprobs": {"content": [{"top_logprobs": top}]}}]}
        else:
            for piece in re.findall(r"\S+|\s+", self.texts.pop(0)):
                yield {"choices": [{"text": piece}]}
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 8}}
        yield {"choices": [{"text": "", "finish_reason": "stop"}], "usage": usage}


def tool(name: str, description: str = "", required: tuple[str, ...] = (), **properties: Any) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name=name, description=description, parameters=schema)


TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
SEND = tool("send", "Send a message to a person.", ("to", "text"), to=TEXT, text=TEXT)
READ = tool("read", "Read a file.", ("path",), path=TEXT, start=WHOLE, end=WHOLE)
FIND = tool("find", "Find a text in the files.", ("pattern",), pattern=TEXT, path={**TEXT, "default": "."})
LAMP = tool("set_lamp", "Switch a lamp.", ("room", "on"), room=TEXT, on={"type": "boolean"})
PLAN = tool("plan", "Plan an event.", ("title", "day"), title=TEXT, day={"enum": ["monday", "friday"]})
MOVE = tool("rename", "Rename a thing.", ("old_name", "new_name"), old_name=TEXT, new_name=TEXT)


def allows(grammar: str | None, text: str) -> bool:
    """Whether a grammar of terminals, choices, sequences and rule names allows a text."""
    assert grammar is not None
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())
    return any(rest == "" for rest in _match(_parse(rules["root"]), text, rules))


def _parse(rule: str) -> list[list[Any]]:
    """Alternatives of sequences of terminals (a tuple of one), names (a string) and groups (a list)."""
    tokens = re.findall(r'"(?:\\.|[^"\\])*"|[|()?]|\w+|\[1-9\] \[0-9\]\?', rule)
    stack: list[list[list[Any]]] = [[[]]]
    for token in tokens:
        if token == "(":
            stack.append([[]])
        elif token == ")":
            group = stack.pop()
            stack[-1][-1].append(group)
        elif token == "|":
            stack[-1].append([])
        elif token == "?":
            stack[-1][-1][-1] = [[stack[-1][-1][-1]], []]
        elif token.startswith("["):
            stack[-1][-1].append([[(str(digit),)] for digit in range(99, 0, -1)])
        else:
            stack[-1][-1].append((json.loads(token),) if token.startswith('"') else token)
    return stack[0]


def _match(alternatives: list[list[Any]], text: str, rules: dict[str, str]) -> list[str]:
    """What may be left of the text."""
    found: list[str] = []
    for sequence in alternatives:
        rests = [text]
        for item in sequence:
            if isinstance(item, tuple):
                rests = [rest[len(item[0]) :] for rest in rests if rest.startswith(item[0])]
            else:
                inner = _parse(rules[item]) if isinstance(item, str) else item
                rests = [after for rest in rests for after in _match(inner, rest, rules)]
        found.extend(rests)
    return found
