"""The edge of the CLI: turns an error into one line for people and an exit code for programs."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from actors.telemetry.logging import redact
from state.errors import OwnedError, SlackwaterError, UsageError
from state.visible import visible

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
        return "error: interrupted; committed epochs are kept, and the next start continues from the last"
    return f"error: {type(error).__name__}: {message} (an unexpected error; --debug shows its traceback)"


def reports_errors(command: Command) -> Command:
    """Ends the process with one line and an exit code when `command` fails.  The command has an option `debug`."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:
            # The reader has closed the pipe (`| head`): not a failure.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        except (Exception, KeyboardInterrupt) as error:
            if kwargs.get("debug"):
                sys.stderr.write(visible(redact("".join(traceback.format_exception(error))), keep="\n"))
            sys.stderr.write(error_line(error) + "\n")
            sys.exit(exit_code(error))

    return wrapped  # type: ignore[return-value]
