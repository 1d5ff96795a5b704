"""Fingerprints: short names of paths and of file versions.  The store keeps them, so they never change.

A version has 8 bytes and is one of two kinds, by its last byte:

    by content     7 bytes of a hash of etag and size                        0
    by delivery    4 bytes of that hash, 3 bytes of the time in seconds      1

A path has versions by content until the run deletes the object and another object comes under its name.  From then on
its versions are by delivery: the same bytes, delivered again, are another version.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state.objects.etag import is_strong, normal_etag, normal_etags

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND, _SECOND = timedelta(microseconds=1), timedelta(seconds=1)
_WEAK = "W/"
_BY_CONTENT, _BY_DELIVERY = b"\0", b"\1"
_CONTENT_BYTES = 4
_SECONDS = 1 << 24


def path_fingerprint(source: str, path: str) -> bytes:
    """The fingerprint of a path of a source, 16 bytes: the key of the table `seen`."""
    return blake2b(f"{source}\0{path}".encode(), digest_size=16).digest()


def text_fingerprint(text: str) -> bytes:
    """The fingerprint of the text of a group, 8 bytes."""
    return blake2b(text.encode(), digest_size=8).digest()


def halves(fingerprints: Sequence[bytes]) -> tuple[pa.Int64Array, pa.Int64Array]:
    """The first and the last 8 bytes of fingerprints of 16 bytes, as numbers.

    Numbers have a fixed place in a row of Spark: they take a third of the time that the bytes take.
    """
    numbers = np.frombuffer(b"".join(fingerprints), "<i8").reshape(-1, 2)
    return pa.array(numbers[:, 0].copy()), pa.array(numbers[:, 1].copy())


def of_halves(high: pa.Int64Array, low: pa.Int64Array) -> pa.BinaryArray:
    """The fingerprints of which these are the `halves`."""
    numbers = np.empty((len(high), 2), "<i8")
    numbers[:, 0], numbers[:, 1] = high.to_numpy(zero_copy_only=False), low.to_numpy(zero_copy_only=False)
    ends = np.arange(0, 16 * len(high) + 1, 16, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), len(high), [None, pa.py_buffer(ends), pa.py_buffer(numbers)])


def version_fingerprint(etag: str | None, size: int, last_modified: datetime | None) -> bytes:
    """The fingerprint of one version of an object by its content, 8 bytes, from the fields of its listing.

    The time counts only if the etag is not strong: stores round it in some answers and not in others, and
    change it when an object is copied onto itself.

    Args:
        etag: the etag, with or without quotes; None if the store has no etags.
        size: bytes.
        last_modified: a time with a time zone.
    """
    etag = normal_etag(etag)
    is_timed = last_modified is not None and not is_strong(etag)
    microseconds = (last_modified - _EPOCH) // _MICROSECOND if is_timed and last_modified is not None else ""
    return blake2b(f"{etag}\0{size}\0{microseconds}".encode(), digest_size=7).digest() + _BY_CONTENT


def delivery_fingerprint(version: bytes, last_modified: datetime) -> bytes:
    """The fingerprint of one delivery of a content, 8 bytes.

    Times are compared in whole seconds, since stores round them in the answer to a HEAD.

    Args:
        version: a version of this content, of either kind.
        last_modified: the time of the object, with a time zone.
    """
    seconds = (last_modified - _EPOCH) // _SECOND % _SECONDS
    return version[:_CONTENT_BYTES] + seconds.to_bytes(3, "big") + _BY_DELIVERY


def is_delivery(version: bytes) -> bool:
    """True if a version is by delivery."""
    return version[-1:] == _BY_DELIVERY


def next_version(
    known: bytes, by_content: bytes, last_modified: datetime, *, is_deleted: bool, deleted: bytes | None
) -> bytes | None:
    """The version of an object under the name of a known one; None if it is the known one.

    Args:
        known: the version that was handed on.
        by_content: the version of the present object, by its content.
        last_modified: the time of this object.
        is_deleted: whether the run has deleted the known one.
        deleted: the delivery that the run has deleted; None if that is not known.
    """
    is_same = known == by_content
    if is_delivery(known):
        is_same = known[:_CONTENT_BYTES] == by_content[:_CONTENT_BYTES]
    delivery = delivery_fingerprint(by_content, last_modified)
    if is_deleted:
        return None if delivery == deleted else delivery
    if is_same:
        return None
    return delivery if is_delivery(known) else by_content


def path_fingerprints(source: str, paths: pa.StringArray) -> list[bytes]:
    """`path_fingerprint` of many paths."""
    return _hashed(blake2b(f"{source}\0".encode(), digest_size=16), paths)


def version_fingerprints(etags: pa.StringArray, sizes: pa.Int64Array, modified_us: pa.Int64Array) -> list[bytes]:
    """`version_fingerprint` of many versions.

    Args:
        etags: with or without quotes; empty for a version without an etag.
        sizes: bytes.
        modified_us: microseconds since 1970.
    """
    etags = normal_etags(etags)
    times: pa.StringArray | pa.StringScalar = pa.scalar("")
    # Nearly all etags begin with a quote, and so are strong.
    if not pc.all(pc.starts_with(etags, '"')).as_py():
        is_weak = pc.or_(pc.equal(etags, ""), pc.starts_with(etags, _WEAK))
        times = pc.if_else(is_weak, modified_us.cast(pa.string()), "")
    texts = pc.binary_join_element_wise(etags, sizes.cast(pa.string()), times, "\0")
    return [each + _BY_CONTENT for each in _hashed(blake2b(digest_size=7), texts)]


def _hashed(begun: blake2b, texts: pa.StringArray) -> list[bytes]:
    """The hash of each text in UTF-8, begun with the same bytes; a copy is faster than a new hash with its options."""
    found = []
    for text in texts.cast(pa.binary()).to_pylist():
        each = begun.copy()
        each.update(text)
        found.append(each.digest())
    return found
