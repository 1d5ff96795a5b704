"""The text of a file as UTF-8: decompressed by its content, without a byte order mark."""

from __future__ import annotations

import codecs

import pyarrow as pa

from actors.file_errors import UnreadableFile, one_line
from actors.formats.limits import CpuTime, Expansion
from actors.objects.object_file import ObjectFile
from actors.settings import ReadLimits

# https://www.rfc-editor.org/rfc/rfc1952, rfc8878, the bzip2 format of its first block, and LZ4's frame format
_SIGNATURES = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bz2"),
    (b"\x04\x22\x4d\x18", "lz4"),
)
_BZIP2_STARTS = (b"1AY&SY", b"\x17rE8P\x90")  # of a block, and of the end
_BYTE_ORDER_MARK = codecs.BOM_UTF8
_HEAD_BYTES = 10
_DECODED_BYTES = 1 << 20


def compression_of(head: bytes) -> str | None:
    """The compression of a content by its first ten bytes, as Arrow names it; None without one."""
    for signature, codec in _SIGNATURES:
        if head.startswith(signature) and (codec != "bz2" or head[4:10] in _BZIP2_STARTS):
            return codec
    return None


class TextContent:
    """Reads the text of a file from a position.

    Args:
        limits: the limits of the reader; `max_expansion` and `max_cpu_s_per_mib` count.
        encoding: the encoding of the file, by its name in Python.
        start: the number of bytes to skip; decompressed or decoded text is read and dropped.
    """

    def __init__(self, file: ObjectFile, limits: ReadLimits, encoding: str = "utf-8", start: int = 0) -> None:
        self.cpu = CpuTime(file.size, limits)
        """The CPU time of its reader."""
        head = file.head(_HEAD_BYTES)
        codec = compression_of(head)
        self._stream = file.stream()
        self._expansion: Expansion | None = None
        if codec is not None:
            self._stream = pa.CompressedInputStream(self._stream, codec)
            self._expansion = Expansion(file.size, limits)
        is_utf8 = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")
        self._encoding = encoding
        self._decoder = None if is_utf8 else codecs.getincrementaldecoder(encoding)()
        self._decoded = b""
        self.is_as_stored = codec is None and is_utf8
        """True if a position in the text is a position in the file."""
        self._position = self._mark = 0
        if not is_utf8:
            self._skip(start)
        elif self.is_as_stored:
            self._mark = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
            if self._mark or start:
                self.seek(start)
        else:
            first = bytes(self._raw(len(_BYTE_ORDER_MARK)))
            self._decoded = b"" if first == _BYTE_ORDER_MARK else first
            self._skip(start)

    @property
    def position(self) -> int:
        """The position of the next byte in the text."""
        return self._position

    def seek(self, position: int) -> bool:
        """Goes to a position; False if that is not possible, since the text is not as it is stored."""
        if self.is_as_stored:
            self._position = max(position, self._mark)
            self._stream.seek(self._position)
        return self.is_as_stored

    def read(self, nbytes: int) -> memoryview:
        """The next bytes, at most `nbytes`; empty only at the end.  They are copied only if needed.

        Raises:
            UnreadableFile: the content cannot be decompressed or decoded, or exceeds a limit.
        """
        self.cpu.require()
        if self._decoder is not None:
            content = memoryview(self._decode(nbytes))
        elif self._decoded:
            content, self._decoded = memoryview(self._decoded[:nbytes]), self._decoded[nbytes:]
        else:
            content = self._raw(nbytes)
        self._position += len(content)
        return content

    def _skip(self, nbytes: int) -> None:
        while nbytes > 0 and (content := self.read(min(nbytes, _DECODED_BYTES))):
            nbytes -= len(content)

    def _raw(self, nbytes: int) -> memoryview:
        try:
            content = memoryview(self._stream.read_buffer(nbytes))
        except pa.ArrowMemoryError:
            raise  # not an error of the file
        except (pa.ArrowException, OSError) as error:
            reason = one_line(error)
        else:
            if self._expansion is not None:
                self._expansion.add(len(content))
            return content
        raise UnreadableFile(reason)

    def _decode(self, nbytes: int) -> bytes:
        assert self._decoder is not None
        while not self._decoded:
            raw = self._raw(max(1, min(nbytes, _DECODED_BYTES)))
            try:
                self._decoded = self._decoder.decode(raw, final=not raw).encode()
            except UnicodeError as error:
                reason = f"it is not {self._encoding}: {one_line(error)}"
            else:
                if not raw:
                    break
                continue
            raise UnreadableFile(reason)
        content, self._decoded = self._decoded[:nbytes], self._decoded[nbytes:]
        return content
