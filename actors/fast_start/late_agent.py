"""The program that the raylet starts in place of an agent: it becomes the agent when the agent is first needed.

    raylet ── starts ──► late_agent ── the first connection to the agent's port ──► the agent, in the same process

The agent for runtime environments takes 0.7 CPU seconds to start, and a run without runtime environments never needs
it.  The raylet connects again until the agent answers.  This program loads nothing that costs time.
"""

from __future__ import annotations

import os
import select
import socket
import sys


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
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
