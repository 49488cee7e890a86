"""Causes."""
from typing import Any
Scenario = dict[str, Any]
CAUSES: dict[str, Any] = {}
