"""`antiphon models PROVIDER`: what is known of a provider's models, with prices."""

from rich.console import Console
from rich.text import Text as Line

from antiphon.cli._codes import DONE
from antiphon.cli.render import terminal
from antiphon.providers.resolve import list_models
from antiphon.types.request import ModelInfo

__all__ = ["show_catalogue"]

HEAD = f"  {'model':<44} {'window':>9} {'output':>8} {'in':>8} {'cached':>8} {'out':>8}"


async def show_catalogue(provider: str) -> int:
    """Print the known models of a provider. Raises `UsageError` for a name that is no provider's."""
    out = terminal()
    models = list_models(provider)
    if not models:
        out.print(f"{provider}: its models are its own; ask it, or see what `antiphon models` says of it")
        return DONE
    out.print(Line(f"{provider}: windows in tokens, prices in US dollars for a million tokens", "bold"))
    out.print(Line(HEAD, "dim"))
    for info in models:
        show_model(out, info)
    out.print(Line("  other names work too; of those nothing is known, and they have no price", "dim"))
    return DONE


def show_model(out: Console, info: ModelInfo) -> None:
    """One model on one line; what is not known is a dash."""
    prices = info.prices
    cells = [number(info.context_window, 9), number(info.output_limit, 8)]
    cells += [money(prices and prices.input), money(prices and prices.cache_read), money(prices and prices.output)]
    tiers = f"  dearer above {prices.tiers[0].above}" if prices and prices.tiers else ""
    out.print(Line(f"  {info.id:<44} {' '.join(cells)}{tiers}"), soft_wrap=True)


def number(tokens: int | None, width: int) -> str:
    return f"{'-' if tokens is None else tokens:>{width}}"


def money(dollars: float | None) -> str:
    return f"{'-' if dollars is None else format(dollars, 'g'):>8}"
