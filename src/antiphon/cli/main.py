"""The `antiphon` command: what it was given goes in, an exit code comes out, and nobody ever sees a traceback for it.

Exit codes: 0 done, 1 a failure, 2 used in a way that cannot work, 3 stopped, 4 a limit was reached, 5 waiting for a
decision, 130 Ctrl-C, 141 nobody reads the output any more.
"""

import logging
import os
import sys
from collections.abc import Sequence

from antiphon.cli._codes import BROKEN_PIPE, ERROR, INTERRUPTED, USAGE
from antiphon.cli._sentences import sentence_of
from antiphon.errors import AntiphonError, UsageError

__all__ = ["main", "run"]

EXTRA = frozenset({"prompt_toolkit", "rich", "typer"})


def main() -> None:
    """The entry point: runs the command of this process's arguments and exits."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command, and give its exit code. What goes wrong is said on stderr, in one line."""
    logger = logging.getLogger("antiphon")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # what it logs is told by events already
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a terminal that cannot show a character shows a question mark
    try:
        from antiphon.cli._app import invoke

        code = invoke(arguments)
        sys.stdout.flush()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        return complain(f"the command needs {package!r}, which is not installed; pip install 'antiphon[cli]'", ERROR)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end
        return BROKEN_PIPE
    except UsageError as error:
        return complain(sentence_of(error), USAGE)
    except (AntiphonError, OSError) as error:
        return complain(sentence_of(error), ERROR)
    return code


def complain(text: str, code: int) -> int:
    sys.stderr.write(f"antiphon: {text}\n")
    return code
