"""What the names of OpenAI's models tell, whatever format they are asked in. Pure."""

import re

__all__ = ["keeps_schemas"]

# platform.openai.com/docs/guides/structured-outputs: "available in our latest large language models, starting with GPT-4o";
# older ones answer 400.
_TOO_OLD = re.compile(
    r"(?:gpt-3|gpt-4(?:-|$)|chatgpt|gpt-4o-2024-05-13|gpt-4o-(?:audio|realtime|search)|o1-(?:mini|preview))"
)


def keeps_schemas(model: str) -> bool:
    """Whether the model keeps to a schema that a request asks for; one that is not known does."""
    return _TOO_OLD.match(model.lower().rpartition("/")[2]) is None
