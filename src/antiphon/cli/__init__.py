"""The command: ask, chat, models."""
