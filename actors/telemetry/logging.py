"""Structured logs: lines for people or JSON on stderr, with the actor and the epoch, and without secrets.

Every logger is made with its `actor`, or bound to it.  Who has an epoch binds, or gives, `epoch`: an actor the one that
is open for it, the coordinator and the run the one that they speak of, else the last that was committed.
Slackwater logs through structlog.  A program that has configured structlog itself keeps its configuration.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog

from actors.telemetry.text import visible
from state.errors import SettingsError
from state.location import SECRET_OPTIONS, is_secret

LEVELS = ("debug", "info", "warning", "error")
REDACTED = "***"

# Ray's workers are other processes: they learn the choice from their environment.
_LEVEL_VARIABLE = "SLACKWATER_LOG_LEVEL"
_JSON_VARIABLE = "SLACKWATER_LOG_JSON"

_IN_TEXT = re.compile(
    r"(?P<name>" + "|".join(sorted(SECRET_OPTIONS, key=len, reverse=True)) + r")(?P<between>[\"']?\s*[=:]\s*[\"']?)"
    r"[^\s\"',;&})\]]+",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(?<=://)[^/\s@]+@")
_SIGNATURE = re.compile(r"(?P<name>X-Amz-(?:Signature|Credential|Security-Token)|sig)=[^&\s\"']+", re.IGNORECASE)


class _StandardError:
    """Writes to what `sys.stderr` is at that moment, so that lines pass above a progress display."""

    def msg(self, message: str) -> None:
        try:
            sys.stderr.write(message + "\n")
            sys.stderr.flush()
        except OSError:
            # Where the disk of the logs is full, the line is lost; what was being told of must go on.
            pass

    log = debug = info = warning = warn = error = critical = exception = fatal = failure = msg


def redact(value: Any) -> Any:
    """The value with every secret in it replaced: by the name of its key, and inside of texts and URLs."""
    if isinstance(value, str):
        text = _IN_TEXT.sub(rf"\g<name>\g<between>{REDACTED}", value)
        return _SIGNATURE.sub(rf"\g<name>={REDACTED}", _IN_URL.sub(f"{REDACTED}@", text))
    if isinstance(value, Mapping):
        return {k: REDACTED if is_secret(str(k)) else redact(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact(item) for item in value]
    if isinstance(value, BaseException):
        return redact(f"{type(value).__name__}: {value}")
    return value


def _redact_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {key: REDACTED if is_secret(key) else redact(value) for key, value in event.items()}


def _visible_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {
        key: visible(value, keep="\n\t" if key == "exception" else "") if isinstance(value, str) else value
        for key, value in event.items()
    }


def _epoch_as_text(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """In JSON: not every reader's numbers hold an epoch."""
    return {key: str(value) if key == "epoch" and isinstance(value, int) else value for key, value in event.items()}


def configure(level: str = "info", json: bool = False) -> None:
    """Logs from `level` on, to stderr, here and in every process that is started from here.

    Args:
        level: one of `LEVELS`.
        json: one JSON object a line, instead of lines for people.

    Raises:
        SettingsError: the level is unknown.
    """
    if level.lower() not in LEVELS:
        raise SettingsError(f"log level {level!r} is unknown: take one of {', '.join(LEVELS)}")
    os.environ[_LEVEL_VARIABLE] = level.lower()
    os.environ[_JSON_VARIABLE] = "1" if json else ""
    renderers: list[Any]
    if json:
        renderers = [_epoch_as_text, structlog.processors.JSONRenderer(default=str)]
    else:
        renderers = [
            _visible_event,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0, sort_keys=False),
        ]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Before the redaction: a traceback quotes the texts of errors.
            structlog.processors.format_exc_info,
            _redact_event,
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level.lower()),
        logger_factory=lambda *_: _StandardError(),
        cache_logger_on_first_use=False,
    )


def configure_default() -> None:
    """For a run that a program started: as its environment says, else warnings; never over its own configuration."""
    if not structlog.is_configured():
        configure(os.environ.get(_LEVEL_VARIABLE) or "warning", bool(os.environ.get(_JSON_VARIABLE)))
