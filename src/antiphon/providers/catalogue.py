"""What is known of models: windows, limits, thinking, modalities, prices; and providers by plain data.

The built-in facts lie beside this file in `catalogue.json`, which says its date and its sources; it is read when the
first model is looked up. A model that is not in it can be used all the same: new ones appear every day.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import UsageError
from antiphon.types.request import ModelInfo, Prices, ThinkingLevel

__all__ = ["Catalogue", "ProviderSpec", "WireFormat", "builtin_catalogue", "find_model", "model_info", "undated"]

WireFormat: TypeAlias = Literal["openai_chat", "openai_responses", "anthropic", "gemini"]
"""The languages that model servers speak here."""

_DATE = re.compile(r"(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3})|-latest)$")
_CLOSE = 0.7  # of 1: how alike two names are of which one may be a slip of the other


class ProviderSpec(Struct, frozen=True, kw_only=True):
    """A provider by plain data: where it is, what it speaks, and where its key is found.

    `keys` are environment variables, the first that is set counts; with any named, a request without a key is refused
    before it is sent. `headers` go with every request. `models` tells what is known of its models; others can be used too.
    """

    name: str
    base_url: str
    wire: WireFormat = "openai_chat"
    keys: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    models: tuple[ModelInfo, ...] = ()


class Catalogue:
    """Facts about models, by provider. It never changes: `with_models` and `with_providers` give a larger one.

    Pass it to `get_model(name, catalogue=…)`; `builtin_catalogue()` is the one to start from.
    """

    __slots__ = ("_families", "_models", "_specs", "date", "sources")

    def __init__(
        self,
        models: Iterable[ModelInfo] = (),
        providers: Iterable[ProviderSpec] = (),
        *,
        date: str | None = None,
        sources: Sequence[str] = (),
    ) -> None:
        self.date = date
        self.sources = tuple(sources)
        self._specs = {spec.name: spec for spec in providers}
        self._models: dict[str, dict[str, ModelInfo]] = {}
        self._families: dict[str, dict[str, str]] = {}  # made when needed
        own = (replace(info, provider=spec.name) for spec in self._specs.values() for info in spec.models)
        for info in (*models, *own):
            self._models.setdefault(info.provider, {})[info.id] = info

    def with_models(self, models: Iterable[ModelInfo | Mapping[str, Any]]) -> "Catalogue":
        """This catalogue with these models too; a model that it has already is replaced.

        A model is a `ModelInfo`, or a mapping with its fields. Raises `UsageError` for a mapping that does not fit.
        """
        more = [_as(ModelInfo, model) for model in models]
        return self._copy([*self._all(), *more], self._specs.values())

    def with_providers(self, providers: Iterable[ProviderSpec | Mapping[str, Any]]) -> "Catalogue":
        """This catalogue with these providers too; one of a name that is taken comes before it.

        A provider is a `ProviderSpec`, or a mapping with its fields. Raises `UsageError` for one that does not fit.
        """
        specs = dict(self._specs)
        for provider in providers:
            spec = _as(ProviderSpec, _with_name(provider))
            if not spec.name or ":" in spec.name or spec.name != spec.name.strip():
                raise UsageError(
                    f"no name for a provider: {spec.name!r}; it stands before the colon of 'provider:model'"
                )
            specs[spec.name] = spec
        return self._copy(self._all(), specs.values())

    def provider(self, name: str) -> ProviderSpec | None:
        """The provider of this name, if it was added to this catalogue."""
        return self._specs.get(name)

    def providers(self) -> list[str]:
        """The names of the providers of which something is known here."""
        return list(dict.fromkeys([*self._models, *self._specs]))

    def models(self, provider: str) -> list[ModelInfo]:
        """What is known of a provider's models, by their names; none of a provider that is not known."""
        return sorted(self._models.get(provider, {}).values(), key=lambda info: info.id)

    def model_info(self, provider: str, model: str) -> ModelInfo | None:
        """What is known of a model, `None` if nothing is.

        A dated id, or one that ends in "latest", has the facts of its family if it has none of its own, under its own id.
        """
        known = self._models.get(provider)
        if not known:
            return None
        if model in known:
            return known[model]
        relative = self._family(provider).get(undated(model.casefold()))
        return None if relative is None else replace(known[relative], id=model)

    def find_model(self, name: str, provider: str | None = None) -> ModelInfo | None:
        """The model that a person means by a part of its name, as "sonnet", "GPT-5 mini" or "openai:nano".

        The exact id; else, in the first provider that has any, the models whose id or display name holds the text, in any
        case: those that end in no date before those that do, then the last by the alphabet.
        """
        prefix, colon, rest = name.partition(":")
        if provider is None and colon and prefix in self._models:
            return self.find_model(rest, prefix)
        places = [provider] if provider is not None else list(self._models)
        for place in places:
            if name in self._models.get(place, {}):
                return self._models[place][name]
        wanted = name.casefold()
        for place in places:
            found = [
                info
                for info in self._models.get(place, {}).values()
                if wanted in info.id.casefold() or wanted in (info.name or "").casefold()
            ]
            if found:
                return max(found, key=lambda info: (not _is_dated(info.id), info.id))
        return None

    def suggest(self, provider: str, model: str) -> str | None:
        """The id that was probably meant by one that is not known; `None` for one that is, or resembles none."""
        known = self._models.get(provider, {})
        if not known or self.model_info(provider, model) is not None:
            return None
        by_fold = {name.casefold(): name for name in known}
        near = get_close_matches(model.casefold(), by_fold, n=1, cutoff=_CLOSE)
        return by_fold[near[0]] if near else None

    def _family(self, provider: str) -> dict[str, str]:
        """The id that speaks for each family: the undated, else the latest, else the last by the alphabet."""
        if provider not in self._families:
            ranked = sorted(
                self._models[provider], key=lambda name: (not _is_dated(name), name.endswith("-latest"), name)
            )
            self._families[provider] = {undated(name.casefold()): name for name in ranked}
        return self._families[provider]

    def _all(self) -> list[ModelInfo]:
        return [info for known in self._models.values() for info in known.values()]

    def _copy(self, models: Iterable[ModelInfo], specs: Iterable[ProviderSpec]) -> "Catalogue":
        return Catalogue(models, specs, date=self.date, sources=self.sources)


class _Row(Struct):
    """A model as the file has it; words are divided by blanks. An empty text for `thinks` is a model that does not."""

    name: str | None = None
    window: int | None = None
    output: int | None = None
    reads: str | None = None
    thinks: str | None = None
    prices: Prices | None = None

    def info(self, provider: str, model: str) -> ModelInfo:
        return ModelInfo(
            provider=provider,
            id=model,
            name=self.name,
            context_window=self.window,
            output_limit=self.output,
            thinking_levels=None if self.thinks is None else cast("tuple[ThinkingLevel, ...]", (*self.thinks.split(),)),
            modalities=None if self.reads is None else (*self.reads.split(),),
            prices=self.prices,
        )


class _File(Struct):
    """The data file."""

    date: str
    sources: list[str]
    models: dict[str, dict[str, _Row]]


@cache
def builtin_catalogue() -> Catalogue:
    """The facts that come with the library."""
    from importlib.resources import files  # here: it loads more than the file needs

    data = files("antiphon.providers").joinpath("catalogue.json").read_bytes()
    file = msgspec.json.decode(data, type=_File)
    models = [row.info(provider, model) for provider, rows in file.models.items() for model, row in rows.items()]
    return Catalogue(models, date=file.date, sources=file.sources)


def model_info(provider: str, model: str) -> ModelInfo | None:
    """What the library knows of a model, `None` if nothing is; see `Catalogue.model_info`."""
    return builtin_catalogue().model_info(provider, model)


def find_model(name: str, provider: str | None = None) -> ModelInfo | None:
    """The model that a person means by a part of its name, `None` if none is; see `Catalogue.find_model`."""
    return builtin_catalogue().find_model(name, provider)


def undated(model: str) -> str:
    """The id without the date or the "latest" at its end: "gpt-5" for "gpt-5-2025-08-07"."""
    return _DATE.sub("", model)


def _is_dated(model: str) -> bool:
    return not model.endswith("-latest") and undated(model) != model


def _with_name(provider: ProviderSpec | Mapping[str, Any]) -> ProviderSpec | Mapping[str, Any]:
    """In plain data, the models of a provider need not repeat its name."""
    if isinstance(provider, ProviderSpec):
        return provider
    models = cast("Iterable[ModelInfo | Mapping[str, Any]]", provider.get("models") or ())
    own: dict[str, Any] = {"provider": provider.get("name")}
    return {
        **provider,
        "models": [_as(ModelInfo, own | {**model} if isinstance(model, Mapping) else model) for model in models],
    }


def _as(kind: type[Any], value: Any) -> Any:
    """The value as a struct. A mistyped field is an error: it would be a fact that nobody ever sees."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise UsageError(f"no {kind.__name__}: {value!r}; give one, or a mapping with its fields")
    fields = dict(cast("Mapping[str, Any]", value))
    strange = [name for name in fields if name not in kind.__struct_fields__]
    if strange:
        raise UsageError(f"{kind.__name__} has no field {strange[0]!r}; it has {', '.join(kind.__struct_fields__)}")
    try:
        return msgspec.convert(fields, kind, from_attributes=True)
    except msgspec.ValidationError as error:
        raise UsageError(f"a mapping that is no {kind.__name__}: {error}; given {fields!r}") from error
