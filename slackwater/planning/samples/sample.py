"""The first bytes of a file, decompressed."""

from __future__ import annotations

from dataclasses import dataclass

from actors.file_errors import ObjectChanged, ObjectVanished, UnreadableFile
from actors.objects.object_file import ObjectFile
from actors.reading.file_head import file_head

SAMPLE_BYTES = 256 * 1024
"""The most bytes of a file that decide about its format."""


@dataclass(frozen=True)
class Sample:
    """The start of a file.

    Args:
        path: the path, relative to its source.
        head: the first `SAMPLE_BYTES` of the content, decompressed.
        is_whole: True if the file has no more bytes.
    """

    path: str
    head: bytes
    is_whole: bool


def sample_of(content: ObjectFile) -> Sample | str:
    """The start of a file, or the reason why it cannot be opened.

    Raises:
        StorageError: as `ObjectFile.head`.
    """
    try:
        head = file_head(content, SAMPLE_BYTES + 1)
    except ObjectChanged:
        return "a program is writing to it: try again when it is finished"
    except ObjectVanished:
        return "it was deleted"
    except UnreadableFile as error:
        return error.reason
    return Sample(content.path, head[:SAMPLE_BYTES], is_whole=len(head) <= SAMPLE_BYTES)
