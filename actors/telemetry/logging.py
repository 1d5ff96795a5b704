"""Structured logs: lines for people or JSON on stderr, with the actor and the epoch, and without secrets.

Every logger is made with its `actor`, or bound to it.  Lines have an `epoch`: an actor's its open epoch, those of the
coordinator and the run the epoch that they are about, or the last committed one.
Slackwater logs through structlog.  A program that has configured structlog itself keeps its configuration.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog

from state.errors import SettingsError
from state.location import SECRET_OPTIONS, is_secret
from state.visible import visible

LEVELS = ("debug", "info", "warning", "error")
REDACTED = "***"

# Ray's workers are other processes: they learn the choice from their environment.
_LEVEL_VARIABLE = "SLACKWATER_LOG_LEVEL"
_JSON_VARIABLE = "SLACKWATER_LOG_JSON"

# A value ends with its quote, which a text inside of JSON has behind a backslash; without a quote at a delimiter.
_QUOTED = r"(?P<quote>\\*[\"'])(?:(?!(?P=quote)).)*"
_NAMES = "|".join(name.replace("_", "[_.-]?") for name in sorted(SECRET_OPTIONS, key=len, reverse=True))
_IN_TEXT = re.compile(
    rf"(?P<name>(?:{_NAMES})(?:\\*[\"'])?\s*[=:]\s*)(?:{_QUOTED}|[^\s\"',;&}})\]]+)",
    re.IGNORECASE,
)
# Values with spaces in them: of a header to the end of the line, of a password up to a delimiter.
_HEADER = re.compile(rf"(?P<name>authorization(?:\\*[\"'])?\s*[=:]\s*)(?:{_QUOTED}|[^\r\n]+)", re.IGNORECASE)
_PASSWORD = re.compile(rf"(?P<name>pass(?:word|wd|phrase)\s*:\s*)(?:{_QUOTED}|[^,;\"'}}\r\n]+)", re.IGNORECASE)
_IN_URL = re.compile(r"(?<=://)[^/\s\"'<>?#]+@")
_SIGNED = re.compile(
    r"(?P<name>(?:\bX-(?:Amz|Goog)-(?:Signature|Credential|Security-Token)|\bsig|\bSignature|\bCredential|"
    r"(?<=[?&])(?:Policy|Key-Pair-Id))=)[^&\s\"'<>,;]+",
    re.IGNORECASE,
)


class _StandardError:
    """Writes to the `sys.stderr` of that moment, so that lines pass above a progress display."""

    def msg(self, message: str) -> None:
        try:
            sys.stderr.write(message + "\n")
            sys.stderr.flush()
        except OSError:
            # If the disk of the logs is full, the line is lost, and the work continues.
            pass

    log = debug = info = warning = warn = error = critical = exception = fatal = failure = msg


def redact(value: Any) -> Any:
    """The value with every secret in it replaced: those that a key names, and those inside of texts and URLs."""
    match value:
        case str():
            text = _IN_URL.sub(f"{REDACTED}@", value)
            for pattern in (_HEADER, _PASSWORD, _IN_TEXT, _SIGNED):
                text = pattern.sub(_masked, text)
            return text
        case Mapping():
            return {key: REDACTED if is_secret(str(key)) else redact(each) for key, each in value.items()}
        case list() | tuple():
            return [redact(each) for each in value]
        case BaseException():
            return redact(f"{type(value).__name__}: {value}")
        case _:
            return value


def _masked(found: re.Match[str]) -> str:
    """The name of a secret with its quote, and the mask; the closing quote follows in the text."""
    return f"{found['name']}{found.groupdict().get('quote') or ''}{REDACTED}"


def _redact_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {key: REDACTED if is_secret(key) else redact(value) for key, value in event.items()}


def _visible_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {
        key: visible(value, keep="\n\t" if key == "exception" else "") if isinstance(value, str) else value
        for key, value in event.items()
    }


def _epoch_as_text(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The epoch as a text, for JSON: numbers of some readers are too small for it."""
    return {key: str(value) if key == "epoch" and isinstance(value, int) else value for key, value in event.items()}


def configure(level: str = "info", json: bool = False) -> None:
    """Logs from `level` on, to stderr, here and in every process that is started from here.

    Args:
        level: one of `LEVELS`.
        json: whether each line is a JSON object, instead of text for people.

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
    """Logs of a run that a program started: by its environment, else warnings; its own configuration stays."""
    if not structlog.is_configured():
        configure(os.environ.get(_LEVEL_VARIABLE) or "warning", bool(os.environ.get(_JSON_VARIABLE)))
