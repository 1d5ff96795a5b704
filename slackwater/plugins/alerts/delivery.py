"""The delivery of a notice: to the log, to a webhook, or to a command."""

from __future__ import annotations

import asyncio
import json
import subprocess
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import structlog

from slackwater.plugins.alerts.alert import LOG, Alert
from slackwater.plugins.alerts.alert_states import Notice

_CONNECT_S, _ANSWER_S, _COMMAND_S = 5.0, 15.0, 30.0
_MOST_TEXT = 200
_LONGEST_S = 10**12
_log = structlog.get_logger(actor="alerts")


class DeliveryError(Exception):
    """A notice was not delivered; the message has the reason."""


def document(alert: Alert, notice: Notice, pipeline: str, root: str) -> dict[str, Any]:
    """The JSON of a notice.

    Args:
        pipeline: the name of the pipeline.
        root: the URL of its root.
    """
    condition, state = alert.condition, notice.state
    return {
        "text": _text(alert, notice, pipeline),
        "alert": alert.name,
        "event": notice.event,
        "when": alert.when,
        "pipeline": pipeline,
        "root": root,
        condition.kind: state.subject or pipeline,
        "value": state.value,
        "unit": condition.unit,
        "since": state.since.isoformat(),
        "at": notice.at.isoformat(),
    }


def deliver(alert: Alert, content: dict[str, Any]) -> None:
    """Delivers a notice.

    Args:
        content: its JSON, see `document`.

    Raises:
        DeliveryError: it was not delivered, or the receiver did not answer in time.
    """
    if isinstance(alert.to, str) and alert.to == LOG:
        if content["event"] == "begin":
            _log.warning("alert begins", alert=alert.name, text=content["text"])
        else:
            _log.info("alert ends", alert=alert.name, text=content["text"])
    elif isinstance(alert.to, str):
        _post(alert.to, json.dumps(content))
    else:
        _run([*alert.to], json.dumps(content))


def _text(alert: Alert, notice: Notice, pipeline: str) -> str:
    condition, state = alert.condition, notice.state
    subject = f", {condition.kind} {state.subject}" if state.subject else ""
    if notice.event == "end":
        return f"{pipeline}{subject}: {alert.name} is over, since {notice.at:%Y-%m-%d %H:%M:%S} UTC"
    seconds = timedelta(seconds=min(round(state.value), _LONGEST_S))
    value = f" ({seconds})" if condition.unit else f" ({state.value:,.0f})" if alert.when.count(">") else ""
    return f"{pipeline}{subject}: {alert.name}{value}"


def _post(url: str, body: str) -> None:
    # The path of a webhook is its password: no message shows it.
    place = f"{urlsplit(url).scheme}://{urlsplit(url).hostname}"
    try:
        status = asyncio.run(_status(url, body))
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise DeliveryError(f"{place}: {type(error).__name__}") from None
    if not 200 <= status < 300:
        raise DeliveryError(f"{place} answered {status}")


async def _status(url: str, body: str) -> int:
    """The status of the answer; its body is not read, and its headers only up to the limits of aiohttp."""
    # `total` also ends an answer that arrives byte by byte.
    timeout = aiohttp.ClientTimeout(total=_ANSWER_S, sock_connect=_CONNECT_S)
    headers = {"Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.post(url, data=body.encode(), headers=headers, allow_redirects=False) as answer,
    ):
        return answer.status


def _run(command: list[str], body: str) -> None:
    try:
        done = subprocess.run(command, input=body, capture_output=True, text=True, timeout=_COMMAND_S, check=False)
    except subprocess.TimeoutExpired:
        raise DeliveryError(f"{command[0]} was still running after {_COMMAND_S:.0f} s, and was ended") from None
    except OSError as error:
        raise DeliveryError(f"{command[0]}: {error.strerror}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it printed no error"])[-1]
        raise DeliveryError(f"{command[0]} ended with {done.returncode}: {last[:_MOST_TEXT]}")
