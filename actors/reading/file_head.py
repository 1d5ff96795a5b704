"""The first bytes of a file, for a judgement about its format."""

from __future__ import annotations

from actors.formats.signatures import HEAD_BYTES
from actors.formats.text.compression import compression_of, plain_stream
from actors.objects.object_file import ObjectFile


def file_head(content: ObjectFile, most_bytes: int) -> bytes:
    """The first bytes of a file, decompressed.

    Raises:
        UnreadableFile: they cannot be decompressed.
        StorageError: as `ObjectFile.head`.
    """
    codec = compression_of(content.head(HEAD_BYTES))
    if codec is None:
        return content.head(min(content.size, most_bytes))
    stream, head = plain_stream(content, codec, None), b""
    while len(head) < most_bytes and (more := bytes(stream.read_buffer(most_bytes - len(head)))):
        head += more
    return head
