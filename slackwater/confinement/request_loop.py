"""Worker side of requests: one request after the other, with answers in parts, and interruptions at any time."""

from __future__ import annotations

import select
import socket
import threading
import traceback
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Protocol

import pyarrow as pa

from slackwater.confinement import frames
from slackwater.confinement.errors import encoded_error
from state.errors import SlackwaterError

_PART_BYTES = 512 << 10


class Requests(Protocol):
    """The program of a worker."""

    def answer(self, body: bytes) -> Iterator[bytes]:
        """The answer to a request, in parts of any size.

        Raises:
            SlackwaterError: sent to the front.
        """
        ...

    def interrupt(self) -> None:
        """Ends the computation of the present answer, if it can be ended; called from another thread."""
        ...


def serve_requests(connection: socket.socket, requests: Requests, idle_s: float | None = None) -> None:
    """Answers requests until the front closes the socket, or none has come for a time."""
    work = SimpleQueue[bytes]()
    is_idle = threading.Event()
    is_idle.set()

    def compute() -> None:
        while True:
            body = work.get()
            _answer(connection, requests, body)
            is_idle.set()

    threading.Thread(target=compute, name="requests", daemon=True).start()
    connection.sendall(frames.packed(frames.READY, 0))
    while True:
        readable, _, _ = select.select([connection], [], [], idle_s)
        if not readable:
            if is_idle.is_set():
                return
            continue
        frame = frames.receive(connection, frames.LARGEST_TO_WORKER)
        if frame is None:
            return
        if frame.kind == frames.INTERRUPT:
            requests.interrupt()
        elif frame.kind == frames.REQUEST:
            is_idle.clear()
            work.put(frame.body)


def _answer(connection: socket.socket, requests: Requests, body: bytes) -> None:
    try:
        for part in requests.answer(body):
            view = memoryview(part)
            for start in range(0, len(view), _PART_BYTES):
                connection.sendall(frames.packed(frames.PART, 0, bytes(view[start : start + _PART_BYTES])))
        connection.sendall(frames.packed(frames.LAST, 0))
    except SlackwaterError as error:
        connection.sendall(frames.packed(frames.FAILED, 0, encoded_error(error)))
    except Exception as error:
        traceback.print_exc()
        unexpected = SlackwaterError(f"{type(error).__name__}: {error} (an unexpected error: please report it)")
        connection.sendall(frames.packed(frames.FAILED, 0, encoded_error(unexpected)))


def arrow_stream(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Batches as a stream of Arrow IPC, as they are computed."""
    sink = _Parts()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), schema) as writer:
        yield from sink.taken()
        for batch in batches:
            writer.write_batch(batch)
            yield from sink.taken()
    yield from sink.taken()


class _Parts:
    """A file that buffers the written bytes until they are taken."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self.closed = False

    def write(self, data: object) -> int:
        self._written.append(bytes(data))  # type: ignore[call-overload]
        return len(self._written[-1])

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True

    def taken(self) -> list[bytes]:
        """The parts that were written since the last call."""
        written, self._written = self._written, []
        return written
