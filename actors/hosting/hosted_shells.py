"""Shells that live in the process of another actor: their callers use them as actors.

A small flow has more processes than work: each takes 50 MiB, and half a percent of a core while it rests.  A call from
the process of the shells is a task of its event loop; from other processes it goes to the host, a Ray actor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from actors.shells.runtime import Actor
from actors.shells.shell import Shell

# Host and name → the shell, of the shells in this process.
_shells: dict[tuple[str, str], Shell[Any]] = {}


class HostedShell(Actor[Any]):
    """Reference to a shell in the process of a host; it may be sent to other processes.

    Args:
        host: the Ray actor, whose method `call_hosted` calls `call`.
        host_id: of the host, for all its shells.
        name: of the shell.
    """

    def __init__(self, host: Any, host_id: str, name: str) -> None:
        self._host, self._key = host, (host_id, name)

    def __getattr__(self, method: str) -> _HostedMethod:
        if method.startswith("_"):  # as of `pickle`, before the attributes are there
            raise AttributeError(method)
        return _HostedMethod(self._host, self._key, method)


class _HostedMethod:
    """A method of a shell, with the face of a method of a Ray actor."""

    def __init__(self, host: Any, key: tuple[str, str], method: str) -> None:
        self._host, self._key, self._method = host, key, method

    def remote(self, *arguments: Any, **named: Any) -> Awaitable[Any]:
        if self._key not in _shells:
            answer: Awaitable[Any] = self._host.call_hosted.remote(self._key, self._method, *arguments, **named)
            return answer
        return asyncio.get_running_loop().create_task(call(self._key, self._method, *arguments, **named))


def host_shell(host: Any, host_id: str, shell: Shell[Any]) -> HostedShell:
    """Takes a shell into this process, which is the host's.  Returns a reference to it."""
    _shells[host_id, shell.name] = shell
    return HostedShell(host, host_id, shell.name)


async def call(key: tuple[str, str], method: str, *arguments: Any, **named: Any) -> Any:
    """Calls a method of a shell in this process."""
    return await getattr(_shells[key], method)(*arguments, **named)
