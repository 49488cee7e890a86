"""What servers that speak Chat Completions accept: one frozen row each, because "compatible" is said of many dialects.

A row is overridden with `msgspec.structs.replace(PROFILES["vllm"], strict=True)`. Where a server's documentation
says nothing, the row is careful: a field that might be refused is not sent.
"""

from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from antiphon.types.request import ModelInfo, ThinkingLevel
from antiphon.types.thinking import LEVELS

__all__ = ["PROFILES", "Profile", "ThinkTags", "ThinkingWords", "detect", "for_model", "is_home"]

ThinkingWords: TypeAlias = dict[ThinkingLevel, dict[str, Any]]
"""What a request body says for each thinking level; a level without a row is not said."""


class ThinkTags(Struct, frozen=True):
    """Between what a model's thoughts stand in its text. `opened`: the prompt opened them, the reply only closes them."""

    opening: str = "<think>"
    closing: str = "</think>"
    opened: bool = False


class Profile(Struct, frozen=True, kw_only=True):
    """One server's dialect of Chat Completions.

    Reached at: `base_url` is the default address, `hosts` the endings of host names and `ports` the ports (of any host;
    with `local_ports`, of this machine alone) that tell the server from others, `keys` the environment variables that
    may hold a key, `key_header` where it goes (`authorization` as a bearer token, another header as it is).

    Request: `max_tokens` is the name of the output limit's field, `thinking` what is said for each level (`off_is_safe`:
    also `off`, to a model of which nothing is known), `seed` the seed's name, `session` the field for a session id.
    `stream_options`, `parallel`, `strict`: whether the field is known. `named_choice`: how one tool is forced, as an
    object or as `required` with that tool alone. `response_format`: the most that is offered for a schema;
    `keeps_schemas`: a schema that is asked for so is kept to, whatever the model. `dialect`: how schemas are told (see
    `antiphon.providers.dialect`).

    Messages: `system_role`; `empty_content` is what a reply of calls alone has as its content; `replay` is the field in
    which a model's reasoning goes back to it, and with `replay_required` it must be there beside calls. `call_ids`:
    `nine` for ids of nine letters and digits. `tool_name`: tool messages say the tool's name. `images`, `files`: whether
    user messages may have them, files by their address too (`file_urls`); `tool_images`: whether a tool's pictures follow
    in a `user` message, stand `inline`, or are only mentioned in a `note`. `extras`: a call's extra fields that go back to the model that sent them.

    Replies, where the server leaves to the client what it should have read itself: `think_tags` are those around thoughts
    in the text; `rescue` the ways in which calls are written into the text, of `json`, `tool_call` (tags of Hermes and
    Qwen) and `mistral`. Both are off: a text may only look like a thought or a call.
    """

    name: str
    base_url: str | None = None
    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    local_ports: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    key_header: str = "authorization"
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    thinking: ThinkingWords = {}
    off_is_safe: bool = False
    seed: Literal["seed", "random_seed"] | None = "seed"
    session: str | None = None
    stream_options: bool = True
    parallel: bool = False
    strict: bool = False
    named_choice: Literal["object", "required"] = "object"
    response_format: Literal["json_schema", "json_object"] | None = "json_schema"
    keeps_schemas: bool = False
    dialect: Literal["plain", "inlined", "openai", "gemini"] = "inlined"
    system_role: Literal["system", "developer"] = "system"
    empty_content: Literal["null", "text", "absent"] = "null"
    replay: Literal["reasoning_content", "reasoning", "reasoning_details"] | None = None
    replay_required: bool = False
    call_ids: Literal["nine", "forty"] | None = None
    plain_names: bool = False
    tool_name: bool = False
    images: bool = True
    files: bool = False
    file_urls: bool = False
    tool_images: Literal["user", "inline", "note"] = "user"
    extras: tuple[str, ...] = ("extra_content",)
    think_tags: ThinkTags | None = None
    rescue: tuple[Literal["json", "tool_call", "mistral"], ...] = ()


def _words(field: str, *words: str | None) -> ThinkingWords:
    """A level's word in one field, in the order of the levels from `off` to `max`; `None` is not said."""
    return {level: {field: word} for level, word in zip(LEVELS, words, strict=True) if word is not None}


def _inside(field: str, words: ThinkingWords) -> ThinkingWords:
    """The words as an object in one field of the body."""
    return {level: {field: said} for level, said in words.items()}


# What the servers of open models have in common: gpt-oss knows three efforts.
_THREE = _words("reasoning_effort", None, "low", "low", "medium", "high", "high", "high")
# Templates of hybrid models (Qwen3, GLM, DeepSeek) know this switch; a template that does not know it ignores it.
_TEMPLATE_OFF: ThinkingWords = {"off": {"chat_template_kwargs": {"enable_thinking": False}}}
_DEEPSEEK_ON: dict[str, Any] = {"thinking": {"type": "enabled"}}

_OPENAI = Profile(
    # platform.openai.com/docs/api-reference/chat/create: `max_tokens` is deprecated and refused by reasoning models;
    # developer messages take the place of system messages; tool messages may have text alone; `prompt_cache_key`;
    # `file` parts carry data or an id, not a URL. docs/guides/reasoning: the efforts.
    name="openai",
    base_url="https://api.openai.com/v1",
    hosts=("api.openai.com",),
    keys=("OPENAI_API_KEY",),
    max_tokens="max_completion_tokens",
    thinking=_words("reasoning_effort", "none", "minimal", "low", "medium", "high", "xhigh", "xhigh"),
    session="prompt_cache_key",
    parallel=True,
    strict=True,
    keeps_schemas=True,
    dialect="openai",
    system_role="developer",
    call_ids="forty",
    plain_names=True,
    files=True,
)

_ROWS = (
    _OPENAI,
    # learn.microsoft.com/azure/ai-foundry/openai/reference: as OpenAI, the key in a header of its own.
    replace(
        _OPENAI,
        name="azure",
        base_url=None,
        hosts=(".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"),
        keys=("AZURE_OPENAI_API_KEY",),
        key_header="api-key",
    ),
    # docs.vllm.ai/en/latest/serving/openai_compatible_server.html; features/reasoning_outputs.html (template switch).
    Profile(
        name="vllm",
        base_url="http://127.0.0.1:8000/v1",
        local_ports=(8000,),
        dialect="plain",
        keeps_schemas=True,
        keys=("VLLM_API_KEY",),
        off_is_safe=True,
        thinking={**_THREE, **_TEMPLATE_OFF},
        parallel=True,
    ),
    # docs.sglang.ai/basic_usage/openai_api_completions.html; advanced_features/separate_reasoning.html.
    Profile(
        name="sglang",
        base_url="http://127.0.0.1:30000/v1",
        ports=(30000,),
        dialect="plain",
        keeps_schemas=True,
        keys=("SGLANG_API_KEY",),
        off_is_safe=True,
        thinking={**_THREE, **_TEMPLATE_OFF},
        parallel=True,
    ),
    # github.com/ggml-org/llama.cpp, tools/server/README.md: template arguments, `parallel_tool_calls`; the choice of a
    # tool is a word, an object is not read.
    Profile(
        name="llamacpp",
        base_url="http://127.0.0.1:8080/v1",
        local_ports=(8080,),
        dialect="plain",
        keeps_schemas=True,
        keys=("LLAMA_API_KEY",),
        off_is_safe=True,
        thinking={**_inside("chat_template_kwargs", _THREE), **_TEMPLATE_OFF},
        parallel=True,
        named_choice="required",
    ),
    # docs.ollama.com/api/openai-compatibility: `reasoning_effort`, `stream_options`; `tool_choice` is not read, so that
    # one tool is forced only as far as it is the only one.
    Profile(
        name="ollama",
        base_url="http://127.0.0.1:11434/v1",
        hosts=("ollama.com",),
        ports=(11434,),
        keeps_schemas=True,
        keys=("OLLAMA_API_KEY",),
        off_is_safe=True,
        thinking=_words("reasoning_effort", "none", "low", "low", "medium", "high", "high", "high"),
        named_choice="required",
    ),
    # lmstudio.ai/docs/developer/openai-compat: the list of fields has no effort; an object as the choice of a tool is
    # answered with 400, "Supported string values: none, auto, required".
    Profile(
        name="lmstudio",
        base_url="http://127.0.0.1:1234/v1",
        ports=(1234,),
        keeps_schemas=True,
        keys=("LMSTUDIO_API_KEY",),
        named_choice="required",
    ),
    # openrouter.ai/docs, "Reasoning tokens" (`reasoning.effort`; `reasoning_details` must go back unchanged for models
    # that call tools between thoughts), "PDF inputs" (`file` parts).
    Profile(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        hosts=("openrouter.ai",),
        dialect="plain",
        keys=("OPENROUTER_API_KEY",),
        off_is_safe=True,
        thinking=_inside("reasoning", _words("effort", "none", "minimal", "low", "medium", "high", "xhigh", "xhigh")),
        parallel=True,
        replay="reasoning_details",
        files=True,
        file_urls=True,
    ),
    # console.groq.com/docs/api-reference: `max_tokens` is deprecated. docs/reasoning: gpt-oss has three efforts, Qwen 3
    # only `none` and `default`.
    Profile(
        name="groq",
        base_url="https://api.groq.com/openai/v1",
        hosts=("api.groq.com",),
        keys=("GROQ_API_KEY",),
        max_tokens="max_completion_tokens",
        thinking=_words("reasoning_effort", "none", "low", "low", "medium", "high", "high", "high"),
        parallel=True,
    ),
    # api-docs.deepseek.com/guides/thinking_mode: the switch, the efforts, and that `reasoning_content` must go back with
    # every reply that called tools, else 400. api/create-chat-completion: `json_object` only, text only, no seed.
    Profile(
        name="deepseek",
        base_url="https://api.deepseek.com/v1",
        hosts=("api.deepseek.com",),
        dialect="plain",
        keys=("DEEPSEEK_API_KEY",),
        off_is_safe=True,
        thinking={
            "off": {"thinking": {"type": "disabled"}},
            "minimal": {**_DEEPSEEK_ON, "reasoning_effort": "low"},
            "low": {**_DEEPSEEK_ON, "reasoning_effort": "low"},
            "medium": {**_DEEPSEEK_ON, "reasoning_effort": "high"},
            "high": {**_DEEPSEEK_ON, "reasoning_effort": "high"},
            "xhigh": {**_DEEPSEEK_ON, "reasoning_effort": "high"},
            "max": {**_DEEPSEEK_ON, "reasoning_effort": "max"},
        },
        seed=None,
        response_format="json_object",
        replay="reasoning_content",
        replay_required=True,
        images=False,
        tool_images="note",
    ),
    # docs.mistral.ai/api, "Chat completion": unknown fields are answered with 422, `stream_options` among them (usage
    # comes unasked); `random_seed`; ids of calls are nine letters and digits; tool messages have a name. A user message
    # straight after a tool's is refused by older models, so that pictures of tools are only mentioned.
    Profile(
        name="mistral",
        base_url="https://api.mistral.ai/v1",
        hosts=("api.mistral.ai",),
        keeps_schemas=True,
        keys=("MISTRAL_API_KEY",),
        seed="random_seed",
        stream_options=False,
        parallel=True,
        call_ids="nine",
        plain_names=True,
        tool_name=True,
        tool_images="note",
    ),
    # docs.together.ai/reference/chat-completions-1; docs/reasoning-overview: efforts of gpt-oss.
    Profile(
        name="together",
        base_url="https://api.together.xyz/v1",
        hosts=("api.together.xyz", "api.together.ai"),
        keys=("TOGETHER_API_KEY",),
        thinking=_THREE,
    ),
    # docs.fireworks.ai/api-reference/post-chatcompletions: `reasoning_effort`, `none` among the words.
    Profile(
        name="fireworks",
        base_url="https://api.fireworks.ai/inference/v1",
        hosts=("api.fireworks.ai",),
        keeps_schemas=True,
        keys=("FIREWORKS_API_KEY",),
        thinking=_words("reasoning_effort", "none", "low", "low", "medium", "high", "high", "high"),
    ),
    # docs.x.ai/docs/api-reference, "Chat completions": `max_tokens` is deprecated. docs/guides/reasoning: two efforts,
    # and models that think always refuse the field, so that `off` is not said.
    Profile(
        name="xai",
        base_url="https://api.x.ai/v1",
        hosts=("api.x.ai",),
        keeps_schemas=True,
        keys=("XAI_API_KEY",),
        max_tokens="max_completion_tokens",
        thinking=_words("reasoning_effort", None, "low", "low", "high", "high", "high", "high"),
        parallel=True,
    ),
    # ai.google.dev/gemini-api/docs/openai: the efforts. docs/thought-signatures: a call's `extra_content` must go back.
    # Fields that it does not know are answered with 400 ("Unknown name"): no seed, no parallel flag.
    Profile(
        name="gemini_openai",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        hosts=("generativelanguage.googleapis.com",),
        dialect="gemini",
        keeps_schemas=True,
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        thinking=_words("reasoning_effort", "none", "minimal", "low", "medium", "high", "high", "high"),
        seed=None,
    ),
    # Any other server: what the first of them all understood in 2023, tools and pictures added.
    Profile(name="generic", thinking=_THREE),
)

PROFILES: dict[str, Profile] = {row.name: row for row in _ROWS}
"""The rows by name."""


def detect(base_url: str) -> Profile:
    """The row of the server at this address, by its host name, else by its port; `generic` for any other."""
    for row in _ROWS:
        if is_home(row, base_url):
            return row
    parts = urlsplit(base_url)
    try:
        port = parts.port
    except ValueError:
        port = None
    here = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    for row in _ROWS:
        if port in row.ports or (here and port in row.local_ports):
            return row
    return PROFILES["generic"]


def is_home(profile: Profile, base_url: str) -> bool:
    """Whether the address is one of the provider's own, where no request is answered without a key."""
    host = (urlsplit(base_url).hostname or "").lower()
    return any(host == ending.lstrip(".") or host.endswith("." + ending.lstrip(".")) for ending in profile.hosts)


def for_model(profile: Profile, info: ModelInfo | None) -> Profile:
    """The row for one model of the server: what is known of its thinking levels decides which are said.

    Of a model of which nothing is known, "do not think" is only said where every model may be told so: others would
    refuse the field, and most of them do not think anyway.
    """
    known = info.thinking_levels if info else None
    if known is None:
        known = LEVELS if profile.off_is_safe else LEVELS[1:]
    thinking = {level: words for level, words in profile.thinking.items() if level in known}
    return profile if thinking == profile.thinking else replace(profile, thinking=thinking)
