"""The public nouns: Agent, Run, Conversation."""
