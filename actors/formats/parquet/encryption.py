"""Encrypted Parquet files, which are refused.

pyarrow ends the process when it is asked for the metadata of an encrypted column, so a file with a plain footer is
checked first.  The field numbers are from `parquet.thrift` (apache/parquet-format).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from actors.file_errors import UnreadableFile
from actors.formats.parquet.thrift import Compact

TRAILER_BYTES = 8
"""The bytes behind a footer: its length, and the magic."""

_MAGIC = b"PARE"
_SIGNATURE_BYTES = 28  # of a plain footer of an encrypted file: 12 of the nonce, 16 of the tag
_NEXT_STEP = "; encrypted Parquet files are not read: decrypt it, and write it again"

_ENCRYPTION_ALGORITHM, _ROW_GROUPS, _COLUMNS, _CRYPTO_METADATA = 8, 4, 1, 8
# The begin of a column with its own key: a struct in field 2, with a list in field 1.  All writers use the first
# form; the protocol also has long forms.
_COLUMN_KEYS = (b"\x2c\x19", b"\x2c\x09\x02", b"\x0c\x04\x19", b"\x0c\x04\x09\x02")


def require_plain_footer(last_bytes: bytes) -> None:
    """Refuses a file whose footer is encrypted, by its last bytes.

    Raises:
        UnreadableFile: it has the magic of such a file.
    """
    if last_bytes.endswith(_MAGIC):
        raise UnreadableFile(f"its footer is encrypted{_NEXT_STEP}")


def require_plain_columns(last_bytes: bytes, parsed_bytes: int, footer: Callable[[int], bytes]) -> None:
    """Refuses a file with encrypted columns, before the metadata of a column is read.

    The footer of an encrypted file is signed: behind the bytes that Arrow parsed is the signature.  A damaged or
    hostile file may lack it, so the footer is also searched for a column with a key of its own.

    Args:
        last_bytes: the last bytes of the file, with the trailer at least.
        parsed_bytes: the length of the footer that Arrow parsed.
        footer: the length of the footer → its bytes, which may cost a request.

    Raises:
        UnreadableFile: columns are encrypted.
    """
    footer_bytes = int.from_bytes(last_bytes[-TRAILER_BYTES:][:4], "little")
    extra_bytes = footer_bytes - parsed_bytes
    if extra_bytes == _SIGNATURE_BYTES:
        raise UnreadableFile(f"its columns are encrypted{_NEXT_STEP}")
    start = max(0, len(last_bytes) - TRAILER_BYTES - footer_bytes)
    is_suspect = extra_bytes or any(last_bytes.find(key, start) >= 0 for key in _COLUMN_KEYS)
    if is_suspect and _has_encrypted_columns(footer(footer_bytes)):
        raise UnreadableFile(f"its columns are encrypted{_NEXT_STEP}")


def _has_encrypted_columns(footer: bytes) -> bool:
    """True if a footer has an encryption algorithm, or a column with encrypted metadata."""
    try:
        metadata = Compact(footer, keeps_lists=True).struct()
    except (IndexError, ValueError, RecursionError):
        return True  # Arrow's decoder accepted these bytes, and this decoder does not: refuse the file
    if metadata.get(_ENCRYPTION_ALGORITHM) is not None:
        return True
    return any(
        _CRYPTO_METADATA in chunk for group in _structs(metadata, _ROW_GROUPS) for chunk in _structs(group, _COLUMNS)
    )


def _structs(struct: dict[int, object], field: int) -> Iterable[dict[int, object]]:
    value = struct.get(field)
    return value if isinstance(value, list) else ()
