"""Fingerprints: short names of paths and of file versions.  The store keeps them, so they never change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def path_fingerprint(source: str, path: str) -> bytes:
    """The fingerprint of a path of a source, 16 bytes: the key of the table `seen`."""
    return blake2b(f"{source}\0{path}".encode(), digest_size=16).digest()


def version_fingerprint(etag: str | None, size: int, last_modified: datetime | None) -> bytes:
    """The fingerprint of one version of an object, 8 bytes, from the fields of its listing.

    Args:
        etag: the etag as the store gives it, with quotes; None if the store gives none.
        size: bytes.
        last_modified: a time with a time zone.
    """
    microseconds = "" if last_modified is None else (last_modified - _EPOCH) // _MICROSECOND
    return blake2b(f"{etag or ''}\0{size}\0{microseconds}".encode(), digest_size=8).digest()


def path_fingerprints(source: str, paths: pa.StringArray) -> list[bytes]:
    """`path_fingerprint` of many paths."""
    texts = pc.binary_join_element_wise(pa.scalar(source), paths, "\0")
    return [blake2b(text, digest_size=16).digest() for text in _encoded(texts)]


def version_fingerprints(etags: pa.StringArray, sizes: pa.Int64Array, modified_us: pa.Int64Array) -> list[bytes]:
    """`version_fingerprint` of many versions.

    Args:
        etags: empty for a version without an etag.
        sizes: bytes.
        modified_us: microseconds since 1970.
    """
    texts = pc.binary_join_element_wise(etags, sizes.cast(pa.string()), modified_us.cast(pa.string()), "\0")
    return [blake2b(text, digest_size=8).digest() for text in _encoded(texts)]


def _encoded(texts: pa.StringArray) -> list[bytes]:
    """The UTF-8 of each text; slicing one buffer is several times as fast as Arrow's own conversion."""
    if not len(texts):
        return []
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1].tolist()
    content = texts.buffers()[2].to_pybytes()
    return [content[start:end] for start, end in pairwise(ends)]
