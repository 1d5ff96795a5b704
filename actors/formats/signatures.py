"""Content of another format than the declared one, by its first bytes.

Without this check, the bytes of a zip archive become column names of a CSV source, and a page of HTML becomes bad
records.  A reader of text checks the first bytes after decompression.  A reader of Parquet, Avro or ORC has a magic of
its own, and asks here only for a better message.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from actors.file_errors import UnreadableFile
from actors.objects.object_file import ObjectFile

HEAD_BYTES = 512
"""The bytes that show a format; the magic of a tar archive lies at byte 257."""

Declared: TypeAlias = Literal["CSV", "JSON", "text", "Parquet", "Avro", "ORC"]

_UNPACK = "unpack it, or leave it out with pattern=..."
_DECOMPRESS = "decompress it"
_LEAVE_OUT = "leave it out with pattern=..."


@dataclass(frozen=True)
class Signature:
    """A format that is not the declared one.

    Args:
        name: its name, with an article.
        next_step: an action of the user that helps.
    """

    name: str
    next_step: str


def _format(name: str) -> str:
    return f'declare the source with format="{name}", or leave the file out with pattern=...'


_EXCEL = Signature("an Excel workbook", "Excel is not read: save each sheet as CSV")
_OPEN_DOCUMENT = Signature("an OpenDocument file", "OpenDocument is not read: save each sheet as CSV")
_TAR = Signature("a tar archive", _UNPACK)
_ORC = Signature("ORC", _format("orc"))

ZIP_MAGIC, XZ_MAGIC = b"PK\x03\x04", b"\xfd7zXZ\x00"

# https://en.wikipedia.org/wiki/List_of_file_signatures, and the specification of each format.
_SIGNATURES: tuple[tuple[bytes, Signature], ...] = (
    (ZIP_MAGIC, Signature("a zip archive", _UNPACK)),
    (b"PK\x05\x06", Signature("an empty zip archive", _LEAVE_OUT)),
    (b"PK\x07\x08", Signature("a part of a split zip archive", _UNPACK)),
    (XZ_MAGIC, Signature("compressed by xz", _DECOMPRESS)),
    (b"\x1f\x8b", Signature("compressed by gzip", _DECOMPRESS)),
    (b"\x28\xb5\x2f\xfd", Signature("compressed by zstd", _DECOMPRESS)),
    (b"\x04\x22\x4d\x18", Signature("compressed by lz4", _DECOMPRESS)),
    (b"7z\xbc\xaf\x27\x1c", Signature("a 7z archive", _UNPACK)),
    (b"Rar!\x1a\x07", Signature("a RAR archive", _UNPACK)),
    (b"%PDF-", Signature("a PDF document", _LEAVE_OUT)),
    (b"\x89PNG\r\n\x1a\n", Signature("a PNG image", _LEAVE_OUT)),
    (b"\xff\xd8\xff", Signature("a JPEG image", _LEAVE_OUT)),
    (b"GIF87a", Signature("a GIF image", _LEAVE_OUT)),
    (b"GIF89a", Signature("a GIF image", _LEAVE_OUT)),
    (b"PAR1", Signature("Parquet", _format("parquet"))),
    (b"PARE", Signature("encrypted Parquet", "decrypt it, and write it again")),
    (b"Obj\x01", Signature("Avro", _format("avro"))),
    (b"ARROW1\x00\x00", Signature("an Arrow (Feather) file", "write it as Parquet")),
    (b"FEA1", Signature("a Feather file", "write it as Parquet")),
    (b"SEQ\x06", Signature("a Hadoop sequence file", "write it as Parquet")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Signature("an old Office document", "save each sheet of a workbook as CSV")),
    (b"SQLite format 3\x00", Signature("a SQLite database", "export its tables as CSV or Parquet")),
)
_BZIP2 = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
_OF_EXCEL = (b"[Content_Types].xml", b"_rels/", b"xl/", b"docProps/")
_OF_OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis"
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")

_SPACE = rb"\s*"
_HTML = re.compile(rb"(?i)<(?:!doctype\s+html|html|head|body)[\s>]")
_XML = re.compile(
    rb"<(?:\?xml\s|!DOCTYPE\s|!--|[A-Za-z_][\w.:-]*(?:\s+[\w.:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*>\s*(?:<|$))"
)
_JSON = re.compile(rb'\{\s*(?:"(?:[^"\\]|\\.)*"\s*:|\}|$)|\[\s*(?:[\[{]|$)')

_BYTE_ORDER_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def binary_format(head: bytes) -> Signature | None:
    """The format of binary content by its first `HEAD_BYTES`; None if it is not known."""
    found = next((signature for magic, signature in _SIGNATURES if head.startswith(magic)), None)
    if head.startswith(ZIP_MAGIC):
        name = head[30:]
        if name.startswith(_OF_EXCEL):
            return _EXCEL
        if name.startswith(_OF_OPEN_DOCUMENT):
            return _OPEN_DOCUMENT
    if found is None and _BZIP2.match(head):
        return Signature("compressed by bzip2", _DECOMPRESS)
    if found is None and head[257:262] == b"ustar":
        return _TAR
    # A header of CSV may begin with these letters.
    if found is None and head.startswith(b"ORC") and _BINARY.search(head):
        return _ORC
    return found


def markup_format(head: bytes) -> Signature | None:
    """HTML or XML by its first bytes; None for other content."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _HTML.match(text):
        return Signature("an HTML page", f"it may be an error page of a download; {_LEAVE_OUT}")
    if _XML.match(text):
        return Signature("XML", f"XML is not read: convert it to JSON lines, or {_LEAVE_OUT}")
    return None


def json_format(head: bytes) -> Signature | None:
    """JSON by its first bytes; None for other content."""
    is_json = _JSON.match(head.removeprefix(b"\xef\xbb\xbf").lstrip())
    return Signature("JSON", _format("json")) if is_json else None


def delimited_format(head: bytes) -> Signature | None:
    """CSV by the first bytes of a text that is not JSON; None for other content."""
    line = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    is_csv = line[:1] not in (b"{", b"[") and any(delimiter in line for delimiter in (b",", b";", b"\t", b"|"))
    return Signature("CSV", _format("csv")) if is_csv else None


def wide_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32 by a byte order mark, or by the zero bytes of Latin text; None for another encoding."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding
    even, odd = head[:64:2], head[1:64:2]
    if len(odd) >= 4 and b"\x00" not in even and not odd.strip(b"\x00"):
        return "utf-16-le"
    if len(odd) >= 4 and b"\x00" not in odd and not even.strip(b"\x00"):
        return "utf-16-be"
    return None


_OF_TEXT: dict[str, tuple[Callable[[bytes], Signature | None], ...]] = {
    "CSV": (binary_format, markup_format),
    "JSON": (binary_format, markup_format),
    "text": (binary_format,),
}


def require_text(head: bytes, declared: Declared) -> None:
    """Refuses content that is not text of the declared format.

    Args:
        head: the first `HEAD_BYTES` of the content, decompressed.

    Raises:
        UnreadableFile: the message names the format that was found, and the next step.
    """
    for find in _OF_TEXT[declared]:
        if (found := find(head)) is not None:
            raise is_another(found, declared)


def is_another(found: Signature, declared: Declared) -> UnreadableFile:
    """The error for content of another format than the declared one."""
    return UnreadableFile(f"it is {found.name}, not {declared}: {found.next_step}")


def with_found_format(error: UnreadableFile, file: ObjectFile, declared: Declared) -> UnreadableFile:
    """The error of a reader of binary files, or a better one if the content is of another format.

    Args:
        error: the error about a file without the magic of its format.

    Raises:
        StorageError: as `ObjectFile.head`.
    """
    head = file.head(HEAD_BYTES)
    found = binary_format(head) or markup_format(head) or json_format(head)
    if found is None and not _BINARY.search(head):
        found = delimited_format(head)
    if found is None or found.name == declared:
        return error
    return is_another(found, declared)
