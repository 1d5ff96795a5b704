"""Front side of requests to a worker: limits of time and memory for each, and a warm worker for the next."""

from __future__ import annotations

import atexit
import os
import threading

from slackwater.confinement import frames
from slackwater.confinement.errors import WorkerEndedError, decoded_error
from slackwater.confinement.program import Program
from slackwater.confinement.worker_process import EXCESS, WorkerProcess
from state.clock import Clock, SystemClock

_LOOK_EVERY_S = 0.05
_START_S = 120.0
_LEAST_GRACE_S = 1.0
_OTHER_BYTES = 256 << 20
"""Memory for caches and for results on their way, in addition to the limit of a request."""


class TimeExceededError(WorkerEndedError):
    """A request took longer than its limit."""


class MemoryExceededError(WorkerEndedError):
    """A request took more memory than its limit, or its answer did."""


class WorkerClient:
    """A worker that answers one request at a time.

    Args:
        scheme: the scheme of the roots that it reads.

    Raises:
        WorkerEndedError: the worker does not start.
    """

    def __init__(self, program: Program, scheme: str, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._process = WorkerProcess(program, scheme)
        self._process.socket.settimeout(_LOOK_EVERY_S)
        self._received = bytearray()
        self._idle_bytes = 0
        try:
            frame = self._frame(self._clock.monotonic() + _START_S)
            if frame is None or frame.kind != frames.READY:
                raise WorkerEndedError("the worker process did not start; see its output above")
        except BaseException:
            self.close()
            raise
        self._idle_bytes = self._process.private_bytes()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_open(self) -> bool:
        """True until the worker is ended here."""
        return self._process.socket.fileno() >= 0

    def close(self) -> None:
        """Ends the worker at once."""
        self._process.kill()
        self._process.wait()
        self._process.socket.close()

    def answer(self, body: bytes, *, timeout_s: float | None, max_memory_bytes: int | None) -> bytes:
        """The answer to a request.  After an error other than one of the worker, the worker is ended.

        Raises:
            TimeExceededError, MemoryExceededError: the request exceeds a limit.
            WorkerEndedError: the worker has ended.
            SlackwaterError: the worker refuses the request, or fails.
        """
        try:
            self._process.socket.settimeout(None)
            self._process.socket.sendall(frames.packed(frames.REQUEST, 0, body))
            self._process.socket.settimeout(_LOOK_EVERY_S)
            last, is_over = self._answer(timeout_s, max_memory_bytes)
        except BaseException as error:
            self.close()
            if isinstance(error, (OSError, frames.BrokenFrameError)):
                raise WorkerEndedError("the worker process has ended") from None
            raise
        if is_over:
            raise TimeExceededError(f"the request took more than {timeout_s:g} s")
        if isinstance(last, frames.Frame):
            raise decoded_error(last.body)
        return last

    def _answer(self, timeout_s: float | None, max_memory_bytes: int | None) -> tuple[bytes | frames.Frame, bool]:
        began = self._clock.monotonic()
        most = None if max_memory_bytes is None else int(EXCESS * max_memory_bytes) + _OTHER_BYTES
        answer, is_over = bytearray(), False
        while True:
            frame = self._frame(self._clock.monotonic() + _LOOK_EVERY_S)
            if frame is not None and frame.kind == frames.PART:
                answer += frame.body
            elif frame is not None and frame.kind == frames.LAST:
                return bytes(answer), is_over
            elif frame is not None and frame.kind == frames.FAILED:
                return frame, is_over
            elif frame is not None:
                raise frames.BrokenFrameError(f"a frame {frame.kind!r} without a request")
            if most is not None and max(len(answer), self._process.private_bytes() - self._idle_bytes) > most:
                raise MemoryExceededError("the request took more memory than its limit")
            taken_s = self._clock.monotonic() - began
            if timeout_s is not None and taken_s > timeout_s:
                is_over = True
                self._process.socket.sendall(frames.packed(frames.INTERRUPT, 0))
                if taken_s > timeout_s + max((EXCESS - 1) * timeout_s, _LEAST_GRACE_S):
                    raise TimeExceededError(f"the request took more than {timeout_s:g} s")

    def _frame(self, until: float) -> frames.Frame | None:
        """The next frame; None if it has not come in time."""
        while True:
            if len(self._received) >= frames.HEADER.size:
                kind, session, size = frames.HEADER.unpack_from(self._received)
                if size > frames.LARGEST_TO_FRONT:
                    raise frames.BrokenFrameError(f"a frame of {size:,} bytes")
                end = frames.HEADER.size + size
                if len(self._received) >= end:
                    body = bytes(self._received[frames.HEADER.size : end])
                    del self._received[:end]
                    return frames.Frame(kind, session, body)
            try:
                part = self._process.socket.recv(1 << 20)
            except TimeoutError:
                if self._clock.monotonic() >= until:
                    return None
                continue
            if not part:
                self._process.wait()
                if self._process.was_out_of_memory():
                    raise MemoryExceededError("the worker process could not get more memory")
                raise WorkerEndedError("the worker process has ended")
            self._received += part


class _WarmWorkers:
    """Workers that wait for the next request of this process: at most one for each program and scheme."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[tuple[int, Program, str], WorkerClient] = {}

    def take(self, program: Program, scheme: str) -> WorkerClient | None:
        with self._lock:
            # A fork of this process has its own number, and leaves the worker to its parent.
            return self._idle.pop((os.getpid(), program, scheme), None)

    def put_back(self, program: Program, scheme: str, worker: WorkerClient) -> None:
        with self._lock:
            before = self._idle.setdefault((os.getpid(), program, scheme), worker)
        if before is not worker:
            worker.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, {}
        for (pid, _, _), worker in idle.items():
            if pid == os.getpid():
                worker.close()


_warm = _WarmWorkers()
atexit.register(_warm.close)


def confined_answer(
    program: Program, scheme: str, body: bytes, *, timeout_s: float | None, max_memory_bytes: int | None
) -> bytes:
    """The answer of a worker that the process keeps for the next request.  Arguments and errors as `WorkerClient`."""
    worker = _warm.take(program, scheme)
    try:
        if worker is not None:
            try:
                return worker.answer(body, timeout_s=timeout_s, max_memory_bytes=max_memory_bytes)
            except (TimeExceededError, MemoryExceededError):
                raise
            except WorkerEndedError:
                pass  # it was idle for too long; a new one answers
        worker = WorkerClient(program, scheme)
        return worker.answer(body, timeout_s=timeout_s, max_memory_bytes=max_memory_bytes)
    finally:
        if worker is not None and worker.is_open:
            _warm.put_back(program, scheme, worker)
