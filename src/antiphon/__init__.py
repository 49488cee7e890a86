"""antiphon: an agent engine. A model calls, tools answer, until nothing is left to say."""
