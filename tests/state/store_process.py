"""A process with a handle on a store: it reads calls from its standard input, one JSON object a line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

from state.clock import SystemClock
from state.errors import SlackwaterError
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.delta import DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from tests.repository import REPOSITORY


class StoreProcess:
    """The caller's end: sends calls to the process, and reads its answers."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.state.store_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=REPOSITORY,
        )

    def tell(self, command: str, root: Location) -> None:
        assert self._process.stdin is not None
        order = {"command": command, "url": root.url, "options": dict(root.storage_options)}
        self._process.stdin.write(json.dumps(order) + "\n")

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process has ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def answers_until_error(self) -> list[dict[str, Any]]:
        answers = [self.answer()]
        while "error" not in answers[-1]:
            answers.append(self.answer())
        return answers

    def freeze(self) -> None:
        """Freezes the process; it stands still when this returns."""
        os.kill(self._process.pid, signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def thaw(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def _say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def _write_until_refused(root: Location) -> None:
    store = LanceStateStore.open(root, SystemClock())
    store.take_over("child")
    while True:
        epoch = store.head.epoch + 1
        delta = DeltaBuilder()
        delta.put("queue", b"%d" % epoch, 0, path=f"child-{epoch}")
        store.commit(epoch=epoch, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
        _say(epoch=epoch)


def _main() -> None:
    store: LanceStateStore | None = None
    for line in sys.stdin:
        order = json.loads(line)
        root = Location(order["url"], order["options"])
        try:
            if order["command"] == "open":
                store = LanceStateStore.create_or_open(root, SystemClock())
                _say(version=store.version, term=store.head.term)
            elif order["command"] == "take over":
                assert store is not None
                _say(term=store.take_over(f"process-{os.getpid()}").term)
            else:
                _write_until_refused(root)
        except SlackwaterError as error:
            _say(error=type(error).__name__, message=str(error))


if __name__ == "__main__":
    _main()
