"""A vendor's whole dialect on one page: the body of each request, and a recorded reply. Run as a script, it shows a page."""

import json
import sys
from pathlib import Path
from typing import Any

from antiphon.providers.anthropic.provider import Anthropic
from antiphon.providers.gemini.provider import Gemini
from antiphon.providers.openai_chat.profiles import PROFILES
from antiphon.providers.openai_chat.provider import OpenAIChat
from antiphon.providers.openai_responses.provider import OpenAIResponses
from antiphon.types.request import ModelInfo

__all__ = ["FORMATS", "made_model", "page", "written"]

OPENAI = ModelInfo(provider="openai", id="gpt-5.1", thinking_levels=("off", "low", "high"))


def made_model(name: str, url: str) -> Any:
    """The model that a page is of, at an address on this machine."""
    match name:
        case "openai_chat":
            return OpenAIChat("gpt-5.1", base_url=f"{url}/v1", api_key="k", profile=PROFILES["openai"], info=OPENAI)
        case "openrouter":
            return OpenAIChat("any/model", base_url=f"{url}/v1", api_key="k", profile=PROFILES["openrouter"])
        case "openai_responses":
            return OpenAIResponses("gpt-5.1", base_url=f"{url}/v1", api_key="k", info=OPENAI)
        case "anthropic":
            return Anthropic("claude-sonnet-4-5", base_url=url, api_key="k")
        case _:
            return Gemini("gemini-3-pro-preview", base_url=f"{url}/v1beta", api_key="k")


FORMATS = ("openai_chat", "openrouter", "openai_responses", "anthropic", "gemini")


def page(name: str) -> dict[str, Any]:
    """The page as it is kept."""
    return json.loads((Path(__file__).parent / f"dialect_{name}.json").read_text(encoding="utf-8"))


def written(kept: dict[str, Any]) -> str:
    """A page for people: one line for each event, message, tool."""
    lines = ["{", '  "reply": [', *_listed(kept["reply"], "    "), "  ],", '  "requests": {']
    for place, (name, body) in enumerate(kept["requests"].items()):
        lines.append(f"    {_json(name)}: {{")
        for number, (field, value) in enumerate(body.items()):
            end = "" if number == len(body) - 1 else ","
            if isinstance(value, list) and value:
                lines += [f"      {_json(field)}: [", *_listed(value, "        "), f"      ]{end}"]
            else:
                lines.append(f"      {_json(field)}: {_json(value)}{end}")
        lines.append("    }" if place == len(kept["requests"]) - 1 else "    },")
    return "\n".join([*lines, "  }", "}"]) + "\n"


def _listed(values: list[Any], indent: str) -> list[str]:
    return [f"{indent}{_json(value)}{'' if place == len(values) - 1 else ','}" for place, value in enumerate(values)]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    print(written(page(sys.argv[1])))
