"""A TCP port in front of another one that delays every answer: the latency of a far store."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType

_CHUNK_BYTES = 1 << 18


class DelayLine:
    """Passes bytes on at once, and answers after `delay_s`; any number of connections, each with any rate.

    Args:
        port: on this machine, of the server.
        delay_s: by which each answer is late.
    """

    def __init__(self, port: int, delay_s: float) -> None:
        self._target, self._delay_s = port, delay_s
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="delay line", daemon=True)
        self.port = 0

    def __enter__(self) -> DelayLine:
        self._thread.start()
        server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._on_connection, "127.0.0.1", 0), self._loop
        ).result()
        self.port = server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _on_connection(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
        both = self._pass(client, to_server, 0.0), self._pass(server, to_client, self._delay_s)
        try:
            await asyncio.gather(*both)
        except asyncio.CancelledError:
            pass  # the end of the line: asyncio's server would print what is raised here

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
        """Every chunk is as late as the first: the delay costs latency, not throughput."""
        loop = asyncio.get_running_loop()
        due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def write() -> None:
            while True:
                at, chunk = await due.get()
                if (wait_s := at - loop.time()) > 0:
                    await asyncio.sleep(wait_s)
                if not chunk:
                    writer.close()
                    return
                writer.write(chunk)
                await writer.drain()

        writing = loop.create_task(write())
        try:
            while chunk := await reader.read(_CHUNK_BYTES):
                due.put_nowait((loop.time() + delay_s, chunk))
        except ConnectionError:
            pass
        due.put_nowait((loop.time() + delay_s, b""))
        await asyncio.gather(writing, return_exceptions=True)
