"""What a person types: in a terminal with history and several lines, or line by line from a pipe or a file."""

import codecs
import os
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.from_thread

if TYPE_CHECKING:
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings
...
