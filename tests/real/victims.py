"""Processes of a run that a test can kill, found from outside by kind."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Final

import psutil

from slackwater.plugins.publish.publishing_process import MODULE

_Sign = Callable[[str], bool]


def _actor(shell: str) -> _Sign:
    return lambda command: command.startswith(f"ray::{shell}")


_SIGNS: Final[dict[str, _Sign]] = {
    "list": _actor("ListActor"),
    "names": _actor("NameActor"),
    "dispatcher": _actor("DispatcherActor"),
    "fetch": _actor("FetchActor"),
    "merger": _actor("MergerActor"),
    "coordinator": _actor("Coordinator"),
    "spark executor": lambda command: "DefaultWorker" in command,
    "spark application": lambda command: "org.apache.spark.deploy.SparkSubmit" in command,
}
# With few fetch actors both live in the process of the coordinator.
_HOSTED: Final = ("dispatcher", "merger")
DRIVER = "driver"
KINDS: Final = (*_SIGNS, DRIVER)
PUBLISHING: Final = "publishing"
"""The process that accompanies a run with publications."""


def _is_publishing(command: str) -> bool:
    return MODULE in command


def find(driver: int, kind: str) -> list[psutil.Process]:
    """The living processes of one kind below a driver, oldest first."""
    if kind == DRIVER:
        return [psutil.Process(driver)]
    found = []
    is_kind = _is_publishing if kind == PUBLISHING else _SIGNS[kind]
    for process in psutil.Process(driver).children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE and is_kind(" ".join(process.cmdline())):
                found.append(process)
        except psutil.Error:
            continue
    if not found and kind in _HOSTED:
        return find(driver, "coordinator")
    found.sort(key=lambda process: float(process.create_time()))
    return found


def send(driver: int, kind: str, number: int = signal.SIGKILL) -> bool:
    """Sends a signal to the youngest process of a kind.  Returns whether there was one."""
    found = find(driver, kind)
    if found:
        try:
            found[-1].send_signal(number)
        except psutil.NoSuchProcess:
            return False
    return bool(found)
