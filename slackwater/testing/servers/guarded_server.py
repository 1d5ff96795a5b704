"""A server on loopback for the length of a `with` block: started until it answers, and always ended."""

from __future__ import annotations

import secrets  # noqa: TID251 - credentials that cannot be guessed
import shutil
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from slackwater.testing.proxies.fault_proxy import FaultProxy
from slackwater.testing.proxies.reverse_proxy import ReverseProxy
from slackwater.testing.servers.free_ports import HOST
from slackwater.testing.servers.guarded_process import GuardedProcess
from state.clock import Clock, SystemClock
from state.errors import SettingsError, StorageUnavailableError

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

REGION = "us-east-1"
_STARTS = 3
_START_S = 60.0
_POLL_S = 0.05


class GuardedServer(ABC):
    """One server with credentials of its own, and the proxies before it.

    It ends with the block, or with the process that started it however that ends.

    Args:
        clock: paces the waiting for the first answer.
    """

    def __init__(self, kind: str, clock: Clock | None = None) -> None:
        self._kind, self._clock = kind, clock or SystemClock()
        self._access_key_id = secrets.token_hex(10).upper()
        self._secret_access_key = secrets.token_hex(20)
        self._process: GuardedProcess | None = None
        self._proxies: list[ReverseProxy] = []
        self._port = 0
        self.pid = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.endpoint!r})"

    @property
    def endpoint(self) -> str:
        """The URL of the server."""
        return f"http://{HOST}:{self._port}"

    @property
    def storage_options(self) -> dict[str, str]:
        """The storage options of the server, in the names that obstore and Lance share."""
        return self._options(self.endpoint)

    def start(self) -> None:
        """Starts the server and waits until it answers; a port that was taken meanwhile costs a second try.

        Raises:
            SettingsError: the server's program is not installed.
            StorageUnavailableError: it did not start; the message has the end of its log.
        """
        last_words = ""
        for _ in range(_STARTS):
            self._process = self._spawn()
            self.pid = self._process.pid
            if self._answers_in_time(self._process):
                return
            last_words = self._process.last_words()
            self.stop()
        raise StorageUnavailableError(
            f"the {self._kind} server did not answer after {_STARTS} starts; the end of its log: {last_words}"
        )

    def stop(self) -> None:
        """Kills the server and removes its files."""
        for proxy in self._proxies:
            proxy.close()
        self._proxies.clear()
        if self._process is not None:
            self._process.stop()
            self._process = None

    def fault_proxy(self, random: Random) -> FaultProxy:
        """A second endpoint that can lose, delay and damage what passes; it ends with the server."""
        proxy = FaultProxy(HOST, self._port, self._options, random)
        self._proxies.append(proxy)
        return proxy

    @abstractmethod
    def _spawn(self) -> GuardedProcess:
        """Starts the program, at ports that are free: `_port` is the one of the endpoint."""

    @abstractmethod
    def _is_ours(self) -> bool | None:
        """True if this server answers at the port, False if another server does; None without an answer."""

    def _options(self, endpoint: str) -> dict[str, str]:
        return {
            "endpoint": endpoint,
            "access_key_id": self._access_key_id,
            "secret_access_key": self._secret_access_key,
            "region": REGION,
            "allow_http": "true",
        }

    def _answers_in_time(self, process: GuardedProcess) -> bool:
        deadline = self._clock.monotonic() + _START_S
        while self._clock.monotonic() < deadline and process.is_running:
            is_ours = self._is_ours()
            if is_ours is not None:
                return is_ours
            self._clock.sleep(_POLL_S)
        return False


def program(name: str, install: str) -> str:
    """The path of a server's program: beside this Python, or where the shell finds it.

    Args:
        install: the command that installs it, for the message.

    Raises:
        SettingsError: it is not installed.
    """
    beside_python = Path(sys.executable).with_name(name)
    found = str(beside_python) if beside_python.exists() else shutil.which(name)
    if not found:
        raise SettingsError(install)
    return found
