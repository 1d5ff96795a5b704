"""A call that may never come back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Result = TypeVar("_Result")


def begin_call(call: Callable[[], _Result]) -> Future[_Result]:
    """Begins a call in a thread of its own, which does not keep the process from ending.

    For calls into other processes that have no limit of time: to a JVM over py4j, to Ray.

    Args:
        call: what is done; its error becomes the future's.
    """
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="begun-call", daemon=True).start()
    return future
