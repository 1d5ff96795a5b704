"""The process around an ownership: its identity, its view of other processes, and its threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from state.ownership.process_identity import ProcessIdentity


class Event(Protocol):
    """A flag that one thread waits for; see `threading.Event`."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def wait(self, timeout: float) -> bool: ...


class Thread(Protocol):
    """A thread that was started; see `threading.Thread`."""

    def join(self) -> None: ...


class Host(Protocol):
    """A process, as an ownership needs it."""

    @property
    def identity(self) -> ProcessIdentity: ...

    def has_ended(self, process: ProcessIdentity) -> bool:
        """True if a process has ended for certain; False if it lives, or cannot be seen from here."""
        ...

    def lives(self, process: ProcessIdentity) -> bool:
        """True if a process lives for certain; False if it has ended, or cannot be seen from here."""
        ...

    def event(self) -> Event:
        """A flag that is not set."""
        ...

    def start(self, work: Callable[[], None]) -> Thread:
        """Starts a thread that ends with the process."""
        ...


class ThisProcess:
    """The process that asks; see `Host`."""

    @property
    def identity(self) -> ProcessIdentity:
        return ProcessIdentity.current()

    def has_ended(self, process: ProcessIdentity) -> bool:
        return process.has_ended()

    def lives(self, process: ProcessIdentity) -> bool:
        return process.lives()

    def event(self) -> Event:
        return threading.Event()

    def start(self, work: Callable[[], None]) -> Thread:
        thread = threading.Thread(target=work, name="owner", daemon=True)
        thread.start()
        return thread
