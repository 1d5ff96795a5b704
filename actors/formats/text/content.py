"""The text of a file as UTF-8: decompressed by its content, without a byte order mark."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from actors.file_errors import UnreadableFile, one_line
from actors.formats.limits import CpuTime, Expansion
from actors.formats.signatures import HEAD_BYTES, Declared, require_text, wide_encoding
from actors.formats.text.compression import TextStream, compression_of, plain_stream
from actors.objects.object_file import ObjectFile
from actors.settings import ReadLimits

_BYTE_ORDER_MARK = codecs.BOM_UTF8
_DECODED_BYTES = 1 << 20


class TextContent:
    """Reads the text of a file from a position.

    Args:
        limits: the limits of the reader; `max_expansion` and `max_cpu_s_per_mib` count.
        encoding: the encoding of the file, by its name in Python.
        start: the number of bytes to skip; decompressed or decoded text is read and dropped.
        declared: the format of the source; content of another format is refused.

    Raises:
        UnreadableFile: the first bytes show another format or encoding, or cannot be decompressed.
    """

    def __init__(
        self,
        file: ObjectFile,
        limits: ReadLimits,
        encoding: str = "utf-8",
        start: int = 0,
        declared: Declared = "text",
    ) -> None:
        self.cpu = CpuTime(file.size, limits)
        """The CPU time of its reader."""
        head = file.head(HEAD_BYTES)
        codec = compression_of(head)
        self._stream = file.stream() if codec is None else None
        """The content, if it is not compressed."""
        self._text: TextStream = plain_stream(file, codec, self._stream)
        self._expansion = None if codec is None else Expansion(file.size, limits)
        self._ahead = b""
        if codec is not None:
            while len(self._ahead) < HEAD_BYTES and (more := self._stored(HEAD_BYTES)):
                self._ahead += more
            head = self._ahead
        require_text(head, declared)
        is_utf8 = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")
        if is_utf8 and (wide := wide_encoding(head)) is not None:
            raise UnreadableFile(_another_encoding(wide, declared))
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
            self._ahead = self._ahead.removeprefix(_BYTE_ORDER_MARK)
            self._skip(start)

    @property
    def position(self) -> int:
        """The position of the next byte in the text."""
        return self._position

    def seek(self, position: int) -> bool:
        """Goes to a position; False if that is not possible, since the text is not as it is stored."""
        if self._stream is None or not self.is_as_stored:
            return False
        self._position = max(position, self._mark)
        self._stream.seek(self._position)
        return True

    def read(self, nbytes: int) -> memoryview:
        """The next bytes, at most `nbytes`; empty only at the end.  They are copied only if needed.

        Raises:
            UnreadableFile: the content cannot be decompressed or decoded, or exceeds a limit.
        """
        self.cpu.require()
        if self._decoder is not None:
            content = memoryview(self._decode(nbytes))
        else:
            content = self._raw(nbytes)
        self._position += len(content)
        return content

    def _skip(self, nbytes: int) -> None:
        while nbytes > 0 and (content := self.read(min(nbytes, _DECODED_BYTES))):
            nbytes -= len(content)

    def _raw(self, nbytes: int) -> memoryview:
        """The next bytes of the content, decompressed."""
        if self._ahead:
            content, self._ahead = memoryview(self._ahead[:nbytes]), self._ahead[nbytes:]
            return content
        return self._stored(nbytes)

    def _stored(self, nbytes: int) -> memoryview:
        content = memoryview(self._text.read_buffer(nbytes))
        if self._expansion is not None:
            self._expansion.add(len(content))
        return content

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


def _another_encoding(encoding: str, declared: Declared) -> str:
    if declared == "JSON":
        return f"its text is {encoding.upper()}, and JSON is UTF-8: write it again as UTF-8"
    return f'its text is {encoding.upper()}: declare the format with encoding="{encoding}"'


def chunks(content: TextContent, nbytes: int) -> Iterator[tuple[memoryview, bool]]:
    """Yields the parts of the text, each with a flag that is True for the last part."""
    chunk = content.read(nbytes)
    while chunk:
        try:
            following = content.read(nbytes)
        except UnreadableFile:
            yield chunk, False
            raise
        yield chunk, not following
        chunk = following
