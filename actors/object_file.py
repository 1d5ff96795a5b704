"""One version of one object, read with as few requests as possible."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import obstore
import pyarrow as pa

from actors.read_errors import ObjectChanged, UnreadableFile
from actors.settings import MIB
from actors.store_errors import ask_store
from state.location import Location

_CACHED_BLOCKS = 4


class ObjectFile:
    """The content of one version of one object.

    A small object is one GET, kept in memory.  A larger one is read in blocks, and the last few are kept: a reader
    that jumps between neighbouring columns asks for each block once.  The last block is never a short one, so that a
    footer is one request.  Every GET is conditional on the etag, so versions are never mixed.

    Args:
        store: obstore's store of the location.
        location: named in errors.
        path: relative to the location.
        etag: as listed; without one (some HTTP servers) the size is all that is compared.
        size: as listed, in bytes.
        whole_object_bytes: up to this size the object is one GET.
        block_bytes: the size of a range otherwise.
    """

    def __init__(
        self,
        store: Any,
        location: Location,
        *,
        path: str,
        etag: str,
        size: int,
        whole_object_bytes: int = 8 * MIB,
        block_bytes: int = 8 * MIB,
    ) -> None:
        self.path, self.size = path, size
        self.is_whole = size <= whole_object_bytes
        self._store, self._location, self._etag = store, location, etag
        self._block_bytes = block_bytes
        self._num_blocks = 1 if self.is_whole else max(1, size // block_bytes)
        self._blocks: OrderedDict[int, pa.Buffer] = OrderedDict()
        self._lock = threading.Lock()
        self._requests = self._bytes_read = 0

    @property
    def requests(self) -> int:
        """GETs so far that were answered or refused."""
        return self._requests

    @property
    def bytes_read(self) -> int:
        """Bytes of content that were received so far."""
        return self._bytes_read

    def stream(self) -> pa.NativeFile:
        """A new seekable file over the content, at its start.

        Its reads raise what the store's answer means.

        Raises:
            ObjectVanished: the object is not there any more.
            ObjectChanged: it has another version now.
            UnreadableFile: it is a link that leads out of a local source.
            AccessDeniedError, StorageUnavailableError: see `state.errors`.
        """
        if self.is_whole:
            return pa.BufferReader(self._block(0))
        return pa.PythonFile(_Seekable(self.size, self._read_at), mode="r")

    def head(self, nbytes: int) -> bytes:
        """The first bytes of the content; what is fetched for them is kept.  Errors as `stream`."""
        return self._read_at(0, min(nbytes, self.size))

    def _read_at(self, start: int, nbytes: int) -> bytes:
        end = min(start + nbytes, self.size)
        parts = []
        while start < end:
            number = min(start // self._block_bytes, self._num_blocks - 1)
            block_start = number * self._block_bytes
            part = self._block(number)[start - block_start : end - block_start]
            parts.append(part.to_pybytes())
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _block(self, number: int) -> pa.Buffer:
        with self._lock:
            block = self._blocks.get(number)
            if block is None:
                block = self._fetch(number)
                if len(self._blocks) == _CACHED_BLOCKS:
                    self._blocks.popitem(last=False)
                self._blocks[number] = block
            self._blocks.move_to_end(number)
            return block

    def _fetch(self, number: int) -> pa.Buffer:
        self._require_below_source()
        start = number * self._block_bytes
        end = self.size if number == self._num_blocks - 1 else start + self._block_bytes
        options: Any = {}
        if self._etag:
            options["if_match"] = self._etag
        if not self.is_whole:
            options["range"] = (start, end)
        self._requests += 1
        content = ask_store(
            lambda: obstore.get(self._store, self.path, options=options).bytes(),
            self._location,
            self.path,
        )
        self._bytes_read += len(content)
        if len(content) != end - start:
            raise ObjectChanged(f"{self._location}/{self.path} has changed since it was listed")
        return pa.py_buffer(content)

    def _require_below_source(self) -> None:
        """Refuses a link that leads out of a local source: who writes there need not be allowed to read elsewhere."""
        if self._location.is_local:
            root = self._location.path.resolve()
            target = (root / self.path.lstrip("/")).resolve()
            if not target.is_relative_to(root):
                raise UnreadableFile("it leads out of the source (a symbolic link?), which is not followed")


class _Seekable(io.RawIOBase):
    """What Arrow needs of a Python file."""

    def __init__(self, size: int, read_at: Callable[[int, int], bytes]) -> None:
        self._size, self._read_at, self._position = size, read_at, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def size(self) -> int:
        return self._size

    def read(self, nbytes: int | None = -1) -> bytes:
        rest = max(0, self._size - self._position)
        content = self._read_at(self._position, rest if nbytes is None or nbytes < 0 else min(nbytes, rest))
        self._position += len(content)
        return content
