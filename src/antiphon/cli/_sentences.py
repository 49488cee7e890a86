"""What went wrong, as one line for a person."""

__all__ = ["sentence_of"]


def sentence_of(error: Exception) -> str:
    """One line. What the system says of a file is told with the file's name."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{str(error.filename)!r}: {error.strerror}"
    return " ".join(text.split())
