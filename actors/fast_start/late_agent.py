"""The program that the raylet starts in place of an agent: it becomes the agent when the agent is first needed.

    raylet ── starts ──► late_agent ── the first connection to the agent's port ──► the agent, in the same process

The agent for runtime environments takes 0.7 CPU seconds to start, and a run without runtime environments never needs
it.  This program loads nothing that costs time.

The port is listened at from the start on, and the agent takes that socket over: at no time can another user of the
machine listen there, and answer the raylet.
"""

from __future__ import annotations

import os
import runpy
import select
import socket
import sys
from typing import Any


def main() -> None:
    """Waits for a connection, and becomes the agent; ends with the raylet, which holds the other end of the input."""
    host, port, *command = sys.argv[1:]
    family, kind, protocol, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
        if sys.stdin in select.select([listener, sys.stdin], [], [])[0]:
            return
        _replace_bind(listener)
        # Python and its options precede the program.
        sys.argv[:] = command[next(number for number, each in enumerate(command) if each.endswith(".py")) :]
        sys.path[0] = os.path.dirname(sys.argv[0])
        runpy.run_path(sys.argv[0], run_name="__main__")


def _replace_bind(listener: socket.socket) -> None:
    """From now on a socket that is bound to the address of the listener becomes the listener."""
    bind, port = socket.socket.bind, listener.getsockname()[1]

    def bind_or_take_over(to_bind: socket.socket, address: Any) -> None:
        if to_bind.family == listener.family and address[1] == port:
            os.dup2(listener.fileno(), to_bind.fileno(), inheritable=False)
        else:
            bind(to_bind, address)

    socket.socket.bind = bind_or_take_over  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    main()
