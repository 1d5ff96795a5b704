"""Pool of warm workers: sessions are spread over them, and one more worker waits to replace one that ends."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Coroutine, Mapping
from dataclasses import asdict, dataclass

import structlog

from slackwater.confinement import frames
from slackwater.confinement.errors import WorkerEndedError, decoded_error
from slackwater.confinement.program import Program
from slackwater.confinement.worker_process import EXCESS, WorkerProcess
from slackwater.plugins.serve.front.remote_session import RemoteSession
from slackwater.plugins.serve.sql_error import OUT_OF_MEMORY, SqlError
from state.errors import SlackwaterError

SERVING = Program("slackwater.plugins.serve.worker", ends_with_thread=True)
_START_S = 60.0
_LOOK_AT_MEMORY_EVERY_S = 0.05
_AGAIN_AFTER_S = 1.0
_CACHES_BYTES = 256 << 20
_log = structlog.get_logger(actor="serve")


@dataclass(frozen=True)
class WorkerSettings:
    """Settings of every worker.

    Args:
        root: the URL of the root.
        options: the options of its store.
        max_memory_bytes: the largest memory of the statements of a worker.
        max_rows: rows of one answer; None for no limit.
        max_answer_bytes: bytes of one answer; None for no limit.
    """

    root: str
    options: Mapping[str, str]
    max_memory_bytes: int
    max_rows: int | None = None
    max_answer_bytes: int | None = None

    @property
    def scheme(self) -> str:
        return self.root.partition("://")[0]


class Worker:
    """A worker with its sessions.

    Attributes:
        ended: True from the moment when the process has ended.
    """

    def __init__(self, settings: WorkerSettings, process: WorkerProcess) -> None:
        self._settings, self._process = settings, process
        self._writer: asyncio.StreamWriter | None = None
        self._sessions: dict[int, RemoteSession] = {}
        self._numbers = itertools.count(1)
        self._idle_bytes = 0
        self._verdict: tuple[RemoteSession, SqlError] | None = None
        self._is_killed = False
        self.ended = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def session_count(self) -> int:
        return len(self._sessions)

    async def start(self) -> asyncio.StreamReader:
        """Waits until the worker is warm.

        Raises:
            SlackwaterError: the root cannot be served.
            WorkerEndedError: the process has ended.
        """
        reader, self._writer = await asyncio.open_connection(sock=self._process.socket, limit=frames.LARGEST_TO_FRONT)
        self._send(frames.packed(frames.START, 0, json.dumps(_sent(self._settings)).encode()))
        try:
            frame = await asyncio.wait_for(_received(reader), _START_S)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError, frames.BrokenFrameError):
            self.end()
            raise WorkerEndedError("a worker process did not start; see its output above") from None
        if frame.kind != frames.READY:
            self.end()
            raise decoded_error(frame.body)
        self._idle_bytes = self._process.private_bytes()
        return reader

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Passes the answers to the sessions until the worker ends."""
        try:
            while True:
                frame = await _received(reader)
                session = self._sessions.get(frame.session)
                if session is None or not session.receive(frame):
                    raise frames.BrokenFrameError(f"a frame {frame.kind!r} without a request")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except frames.BrokenFrameError as error:
            _log.error("a worker process breaks the protocol, and is ended", reason=str(error))
            self.kill()
        finally:
            self.end()

    def open(self, startup: Mapping[str, str]) -> RemoteSession:
        """A new session."""
        session = RemoteSession(next(self._numbers), self._send)
        self._sessions[session.number] = session
        self._send(frames.packed(frames.OPEN, session.number, json.dumps(dict(startup)).encode()))
        return session

    def close(self, session: RemoteSession) -> None:
        """Ends a session."""
        if self._sessions.pop(session.number, None) is not None and not self.ended:
            session.close()

    def exceeds_memory(self) -> bool:
        """True if the statements of the worker have more memory than they may, by half."""
        busy = any(session.is_busy for session in self._sessions.values())
        limit = self._idle_bytes + _CACHES_BYTES + EXCESS * self._settings.max_memory_bytes
        return busy and self._process.private_bytes() > limit

    def longest(self) -> RemoteSession | None:
        """The session whose statement has run for the longest time; None if none runs."""
        busy = [session for session in self._sessions.values() if session.is_busy]
        return min(busy, key=lambda each: each.busy_since or 0.0, default=None)

    def condemn(self, session: RemoteSession, error: SqlError) -> None:
        """Ends the worker for the statement of a session."""
        if self._verdict is None:
            self._verdict = session, error
            _log.warning("a worker process is ended", sqlstate=error.sqlstate, reason=error.message, pid=self.pid)
        self._process.kill()

    def kill(self) -> None:
        """Ends the process at once, without waiting for its end."""
        self._is_killed = True
        self._process.kill()

    def end(self) -> None:
        """Ends the process and its sessions."""
        if self.ended:
            return
        self.ended = True
        self._process.kill()
        was_killed = self._is_killed or self._verdict is not None
        self._process.wait()
        if not was_killed:
            _log.warning("a worker process ended by itself", pid=self.pid, exit_code=self._process.exit_code)
        if self._writer is not None:
            self._writer.transport.abort()
        sessions, self._sessions = list(self._sessions.values()), {}
        was_out_of_memory = self._process.was_out_of_memory() and self._verdict is None and not self._is_killed
        for session in sessions:
            if self._verdict is not None and session is self._verdict[0]:
                session.end(self._verdict[1])
            elif session.is_busy and was_out_of_memory:
                session.end(_OUT_OF_MEMORY)
            else:
                session.end(_ENDED)

    def _send(self, frame: bytes) -> None:
        if self._writer is not None and not self.ended:
            self._writer.write(frame)


_ENDED = SqlError("57P01", "the worker process of this session has ended: connect again")
_OUT_OF_MEMORY = SqlError(
    OUT_OF_MEMORY, "the worker process could not get more memory: group, filter or limit the rows"
)


class WorkerPool:
    """The workers of an endpoint.

    Args:
        settings: the settings of every worker.
        size: the number of workers that have sessions.
        spare: the number of further warm workers, each of which takes the place of one that ends.
    """

    def __init__(self, settings: WorkerSettings, size: int, spare: int = 1) -> None:
        self.settings, self._size, self._spare = settings, size, spare
        self._ready: list[Worker] = []
        self._starting: set[Worker] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._change = asyncio.Event()
        self._is_closed = False

    @property
    def workers(self) -> tuple[Worker, ...]:
        """The workers that are warm."""
        return tuple(self._ready)

    async def start(self) -> None:
        """Starts the workers, and waits until the first one is warm.

        Raises:
            SlackwaterError: the root cannot be served.
        """
        try:
            await self._started()
        except BaseException:
            self.close()
            raise
        for _ in range(self._size + self._spare - 1):
            self._run(self._started_again())
        self._run(self._watch_memory())

    def close(self) -> None:
        """Ends all workers at once."""
        self._is_closed = True
        workers = [*self._ready, *self._starting]
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.end()
        for task in self._tasks:
            task.cancel()

    async def open(self, startup: Mapping[str, str]) -> tuple[Worker, RemoteSession]:
        """A new session in the worker with the fewest sessions.

        Raises:
            SqlError: no worker is warm within some time.
        """
        try:
            async with asyncio.timeout(_START_S):
                while not self._ready:
                    self._change.clear()
                    await self._change.wait()
        except TimeoutError:
            raise SqlError("57P03", "no worker process is ready: try later") from None
        # Workers beyond the size are spare: they take the place of workers that end.
        worker = min(self._ready[: self._size], key=lambda each: each.session_count)
        return worker, worker.open(startup)

    async def _started(self) -> None:
        worker = Worker(self.settings, WorkerProcess(SERVING, self.settings.scheme))
        self._starting.add(worker)
        try:
            reader = await worker.start()
        finally:
            self._starting.discard(worker)
        if self._is_closed:
            worker.end()
            return
        self._ready.append(worker)
        self._change.set()
        self._run(self._followed(worker, reader))

    async def _followed(self, worker: Worker, reader: asyncio.StreamReader) -> None:
        try:
            await worker.read(reader)
        finally:
            self._ready.remove(worker)
        if not self._is_closed:
            self._run(self._started_again())

    async def _started_again(self) -> None:
        while not self._is_closed:
            try:
                await self._started()
                return
            except (SlackwaterError, OSError) as error:
                _log.warning("a worker process cannot start; it is tried again", error=str(error))
                await asyncio.sleep(_AGAIN_AFTER_S)

    async def _watch_memory(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_AT_MEMORY_EVERY_S)
            for worker in self.workers:
                longest = worker.longest() if worker.exceeds_memory() else None
                if longest is not None:
                    worker.condemn(
                        longest,
                        SqlError(
                            OUT_OF_MEMORY,
                            "the statement took more memory than the server gives (--max-memory-gib): group, filter or "
                            "limit its rows",
                        ),
                    )

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _sent(settings: WorkerSettings) -> dict[str, object]:
    return {**asdict(settings), "options": dict(settings.options)}


async def _received(reader: asyncio.StreamReader) -> frames.Frame:
    kind, session, size = frames.HEADER.unpack(await reader.readexactly(frames.HEADER.size))
    if size > frames.LARGEST_TO_FRONT:
        raise frames.BrokenFrameError(f"a frame of {size:,} bytes")
    return frames.Frame(kind, session, await reader.readexactly(size))
