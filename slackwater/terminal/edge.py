"""Where errors end: one line that says what is wrong and what next, and an exit code that programs can act on."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from actors.telemetry.logging import redact
from actors.telemetry.text import visible
from state.errors import OwnedError, SlackwaterError, UsageError

FAILURE = 1
USAGE = 2
OWNED = 75  # EX_TEMPFAIL of sysexits.h: the same command may succeed later
INTERRUPTED = 130

Command = TypeVar("Command", bound=Callable[..., Any])


def exit_code(error: BaseException) -> int:
    """The exit code of the process that ends with this error."""
    if isinstance(error, OwnedError):
        return OWNED
    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return FAILURE


def error_line(error: BaseException) -> str:
    """One line for people, without secrets."""
    message = visible(" ".join(redact(str(error)).split()))
    if isinstance(error, SlackwaterError):
        return f"error: {message}"
    if isinstance(error, KeyboardInterrupt):
        return "error: interrupted; what was committed stays, and a new start goes on from there"
    return f"error: {type(error).__name__}: {message} (not expected here; --debug shows where it comes from)"


def reports_errors(command: Command) -> Command:
    """Ends the process as this package promises when `command` fails.  The command has an option `debug`."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:
            # The reader of our output has seen enough (`| head`): not a failure.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        except (Exception, KeyboardInterrupt) as error:
            if kwargs.get("debug"):
                sys.stderr.write(visible(redact("".join(traceback.format_exception(error))), keep="\n"))
            sys.stderr.write(error_line(error) + "\n")
            sys.exit(exit_code(error))

    return wrapped  # type: ignore[return-value]
