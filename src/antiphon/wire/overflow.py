"""How servers say that a request does not fit the model's context window.

There is no common code, so this is a table of the words that they use. Pure; what the application or a provider does
about an overflow is decided elsewhere.
"""

import re

__all__ = ["OVERFLOW_CODES", "tells_overflow"]

OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",  # OpenAI, Azure, Groq, and servers that imitate them
        "exceed_context_size_error",  # llama.cpp's server
        "model_context_window_exceeded",  # Anthropic and Z.ai, as a reason why a reply ended
    }
)

_PHRASES = (
    r"prompt is too long",  # Anthropic; vLLM: "the prompt (total length ..) is too long to fit into the model"
    r"prompt \(.{1,40}\) is (?:too long|longer than)",
    r"input length and `?max_tokens`? exceed context limit",  # Anthropic
    r"input is too long for requested model",  # Bedrock
    r"exceeds the (?:model'?s )?(?:maximum )?(?:context window|context length|available context size)",
    r"context window exceeds",  # MiniMax
    r"input token count.{0,40}exceeds the maximum",  # Gemini
    r"maximum (?:context|prompt|model) length",  # OpenAI, OpenRouter, vLLM, DeepSeek, xAI, Mistral, Ollama
    r"longer than the (?:model'?s )?(?:maximum )?(?:context|model) length",  # SGLang
    r"greater than the context length",  # LM Studio
    r"reduce the length of the (?:messages|prompt|input)",  # Groq, vLLM
    r"prompt token count.{0,40}exceeds the limit",  # GitHub Copilot
    r"exceeded model token limit",  # Moonshot
    r"`inputs` tokens \+ `max_new_tokens` must be <=",  # Text Generation Inference, Together
    r"(?:context[ _](?:length|window|size)|token limit)[ _]exceeded",
    r"too many tokens",  # Cohere
)
_OVERFLOW = re.compile("|".join(_PHRASES), re.IGNORECASE | re.DOTALL)

# Throttling speaks of tokens too ("Too many tokens, please wait before trying again", "tokens per min").
_THROTTLED = re.compile(r"please wait|per (?:minute|min|hour|day)|rate.?limit|too many requests|quota", re.IGNORECASE)


def tells_overflow(text: str, code: str | None = None) -> bool:
    """Whether a server's words, or its code for the failure, say that the input was too long for the model."""
    if code in OVERFLOW_CODES:
        return True
    return _OVERFLOW.search(text) is not None and _THROTTLED.search(text) is None
