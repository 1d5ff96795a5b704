"""Content of one version of one object, read with as few requests as possible."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future

import pyarrow as pa

from actors.file_errors import ObjectChanged, UnreadableFile
from actors.objects.range_cache import RangeCache
from actors.objects.ranges import Bytes, Range, range_plan, seekable
from actors.settings import RequestSettings

_KEPT_BLOCKS = 3


class ObjectFile:
    """The content of one version of one object.

    A small object takes one GET, and is kept in memory.  A larger one is read in ranges, which `fetch` joins and gets
    side by side, or as a whole in blocks, of which the next is under way while one is read.  Every GET is conditional
    on the version, so versions are never mixed.

    Args:
        get: gets a range of this version, by one request.
        url: the URL, for messages and the cache.
        path: the path, relative to its source.
        size: the size as listed, in bytes.
        etag: the etag as listed.
        settings: the sizes of requests.
        threads: threads in which requests wait for their answers.
        cache: a cache that is asked before the store; used only with an etag.
    """

    def __init__(
        self,
        get: Callable[[Range], Bytes],
        *,
        url: str,
        path: str,
        size: int,
        etag: str,
        settings: RequestSettings,
        threads: Executor,
        cache: RangeCache | None = None,
    ) -> None:
        self.path, self.size, self.settings = path, size, settings
        self.is_whole = size <= settings.whole_object_bytes
        self._get, self._url, self._etag, self._threads = get, url, etag, threads
        self._cache = cache if etag else None
        block_bytes = size if self.is_whole else settings.block_bytes
        # The rest joins the last block, so that no block is shorter than the others.
        starts = range(0, max(1, size - size % max(1, block_bytes)), max(1, block_bytes))
        self._blocks = list(zip(starts, [*starts[1:], size], strict=True))
        self._kept: OrderedDict[int, Future[pa.Buffer]] = OrderedDict()
        self._lock = threading.Lock()
        self._under_way: set[Future[pa.Buffer]] = set()
        self._requests = self._bytes_read = 0

    @property
    def requests(self) -> int:
        """Number of GETs so far that were answered or refused."""
        return self._requests

    @property
    def bytes_read(self) -> int:
        """Bytes of content received so far."""
        return self._bytes_read

    def stream(self) -> pa.NativeFile:
        """A new seekable file over the content, at its start; reading it raises the same errors.

        Raises:
            ObjectVanished: the object does not exist any more.
            ObjectChanged: the object has another version now.
            UnreadableFile: the client does not take the path, or it leads over a link in a local source.
            AccessDeniedError, StorageUnavailableError: see `state.errors`.
        """
        return pa.BufferReader(self._block(0)) if self.is_whole else seekable(self.size, self._read_at)

    def head(self, nbytes: int) -> bytes:
        """The first bytes of the content; the block that holds them is kept.  Errors as `stream`."""
        return bytes(self._read_at(0, min(nbytes, self.size)))

    def fetch(self, wanted: Iterable[Range]) -> Fetched:
        """Asks for ranges of the content, and does not wait for them.

        Raises:
            UnreadableFile: a range is not within the content.  Other errors come with the reading of the ranges.
        """
        ranges = list(wanted)
        if any(not 0 <= start <= end <= self.size for start, end in ranges):
            raise UnreadableFile(f"it refers to bytes outside of its {self.size} bytes")
        if self.is_whole:
            return Fetched(self, [((0, self.size), self._kept_block(0, ahead=False))])
        plan = range_plan(
            ranges, max_gap_bytes=self.settings.max_gap_bytes, max_span_bytes=self.settings.max_span_bytes
        )
        answers: list[Future[pa.Buffer]] = [Future() for _ in plan]
        for answer, each in zip(answers, plan, strict=True):
            self._get_aside(answer, each)
        return Fetched(self, list(zip(plan, answers, strict=True)))

    def ask(self) -> None:
        """Asks for a small object and does not wait; its content, or the error, is there for the next reading."""
        if self.is_whole:
            self._kept_block(0, ahead=True)

    def settle(self) -> None:
        """Drops ranges that were asked for and not read; then `requests` and `bytes_read` do not change any more."""
        with self._lock:
            under_way = list(self._under_way)
        for each in under_way:
            if not each.cancel():
                each.exception()

    def _read_at(self, start: int, nbytes: int) -> bytes | memoryview:
        end = min(start + nbytes, self.size)
        parts = []
        while start < end:
            number = min(start // self._blocks[0][1], len(self._blocks) - 1)
            part = memoryview(self._block(number))[start - self._blocks[number][0] :][: end - start]
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _block(self, number: int) -> pa.Buffer:
        block = self._kept_block(number, ahead=False)
        if 0 < number < len(self._blocks) - 1:
            self._kept_block(number + 1, ahead=True)
        return block.result()

    def _kept_block(self, number: int, *, ahead: bool) -> Future[pa.Buffer]:
        with self._lock:
            block = self._kept.get(number)
            is_new = block is None
            if block is None:
                block = self._kept[number] = Future()
                if len(self._kept) > _KEPT_BLOCKS:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(number)
        if is_new and ahead:
            self._get_aside(block, self._blocks[number])
            return block
        if is_new:
            self._answer(block, self._blocks[number])
        if block.done() and block.exception() is not None:
            # The error is told once; whoever reads on asks again.
            with self._lock:
                self._kept.pop(number, None)
        return block

    def _get_aside(self, answer: Future[pa.Buffer], wanted: Range) -> None:
        with self._lock:
            self._under_way.add(answer)
        answer.add_done_callback(self._under_way.discard)
        self._threads.submit(self._answer, answer, wanted)

    def _answer(self, answer: Future[pa.Buffer], wanted: Range) -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            content = self._content(wanted)
        except BaseException as error:
            answer.set_exception(error)
        else:
            answer.set_result(content)

    def _content(self, wanted: Range) -> pa.Buffer:
        if not self.size:
            # It may stand for a directory: then the store has no object of this name.
            return pa.py_buffer(b"")
        if self._cache is not None and (kept := self._cache.get(self._url, self._etag, wanted)) is not None:
            return kept
        start, end = wanted
        with self._lock:
            self._requests += 1
        try:
            content = self._get(wanted)
        except UnreadableFile:
            # The client does not take the name, and made no request.
            with self._lock:
                self._requests -= 1
            raise
        with self._lock:
            self._bytes_read += len(content)
        if len(content) != end - start:
            raise ObjectChanged(f"{self._url} has changed since it was listed")
        answer = pa.py_buffer(content)
        if self._cache is not None:
            self._cache.put(self._url, self._etag, wanted, answer)
        return answer


class Fetched:
    """Ranges of one object, fetched or under way.

    Args:
        file: the object.
        parts: the ranges, in order and without overlaps, and their contents.
    """

    def __init__(self, file: ObjectFile, parts: Sequence[tuple[Range, Future[pa.Buffer]]]) -> None:
        self._file, self._parts = file, parts

    def stream(self) -> pa.NativeFile:
        """A seekable file over the whole content; other bytes are fetched when they are read.

        Errors as `ObjectFile.stream`.
        """
        if self._file.is_whole:
            return pa.BufferReader(self._parts[0][1].result())
        return seekable(self._file.size, self.read_at)

    def read_at(self, start: int, nbytes: int) -> bytes | memoryview:
        """`nbytes` of the content from `start` on."""
        end, parts = start + nbytes, []
        for (first, last), content in self._parts:
            if start < min(first, end):
                parts.append(self._file.fetch([(start, min(first, end))]).joined())
                start = min(first, end)
            if first <= start < min(last, end):
                parts.append(memoryview(content.result())[start - first : end - first])
                start += len(parts[-1])
        if start < end:
            parts.append(self._file.fetch([(start, end)]).joined())
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def joined(self) -> memoryview:
        """The contents of all ranges, one behind the other."""
        contents = [memoryview(content.result()) for _, content in self._parts]
        return contents[0] if len(contents) == 1 else memoryview(b"".join(contents))
