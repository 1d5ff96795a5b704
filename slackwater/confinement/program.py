"""Program of a worker process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A program of a worker; the room that starts the worker declares it.

    Args:
        module: has the function `run(connection)`, which returns when the front closes the socket.
        ends_with_thread: whether Linux ends the worker together with the thread that has started it.  For a front that
            starts workers in a thread that lives as long as they do.
        limits_files: whether a file that it writes has at most 256 MiB.
    """

    module: str
    ends_with_thread: bool = False
    limits_files: bool = True

    @property
    def arguments(self) -> list[str]:
        return [self.module, str(int(self.ends_with_thread)), str(int(self.limits_files))]

    @classmethod
    def of_arguments(cls, arguments: list[str]) -> Program:
        module, ends_with_thread, limits_files = arguments
        return cls(module, bool(int(ends_with_thread)), bool(int(limits_files)))
