"""OpenAI's Chat Completions, and the many servers that speak it."""
