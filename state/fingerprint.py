"""Short, stable names for paths and for versions of files.  They are written into the store: never change them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from hashlib import blake2b

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


def path_fingerprint(source: str, path: str) -> bytes:
    """16 bytes that stand for a path of a source: the key of `seen`."""
    return blake2b(f"{source}\0{path}".encode(), digest_size=16).digest()


def version_fingerprint(etag: str | None, size: int, last_modified: datetime | None) -> bytes:
    """8 bytes that stand for one version of an object, from all that its listing tells.

    Args:
        etag: as the store gives it, quotes included; None if it gives none.
        size: in bytes.
        last_modified: with its time zone.
    """
    microseconds = "" if last_modified is None else (last_modified - _EPOCH) // _MICROSECOND
    return blake2b(f"{etag or ''}\0{size}\0{microseconds}".encode(), digest_size=8).digest()
