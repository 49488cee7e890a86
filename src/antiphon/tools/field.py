"""pydantic's `Field`: descriptions, limits and defaults of a tool's parameters, from one place with everything else."""

from pydantic import Field

__all__ = ["Field"]
