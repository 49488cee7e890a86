"""The type of the application's own object, which tools and hooks reach as `ctx.deps`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    DepsT = TypeVar("DepsT", default=Any)
else:  # the default is for type checkers alone, and its package costs import time
    from typing import TypeVar

    DepsT = TypeVar("DepsT")
    """The application's own type."""

__all__ = ["DepsT"]
