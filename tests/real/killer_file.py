"""A file that ends the actor that reads it: its answer never comes, and meanwhile the actor is killed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from slackwater.testing.proxies.fault_proxy import FaultProxy
from tests.real import victims

_POLL_S = 0.05


@contextmanager
def killer_file(proxy: FaultProxy, key: str) -> Iterator[None]:
    """Kills the fetch actor at each request of a file, until the block ends; then the file can be read.

    Args:
        proxy: in front of the store.
        key: of the file, below the bucket.
    """
    proxy.on("GET", key).freeze()
    ended = threading.Event()

    def kill() -> None:
        killed = 0
        while not ended.wait(_POLL_S):
            asked = sum(request.key == key for request in proxy.met("freeze"))
            if asked > killed and victims.send(os.getpid(), "fetch"):
                killed = asked

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        proxy.heal()
