"""ETags in one form: servers give them with and without quotes, also for one object in two answers.

rclone and Azure list them without quotes, and Azure quotes them in the answer to a HEAD.  The normal form is the one of
RFC 9110: `"abc"` for a strong ETag, `W/"abc"` for a weak one, and an empty text for none.  Conditional requests carry
this form, versions are made of it, and the store keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_QUOTE = '"'
_WEAK = "W/"


def normal_etag(etag: str | None) -> str:
    """An ETag in the normal form; empty for None and for an empty text."""
    text = (etag or "").strip()
    weak = _WEAK if text[:2].upper() == _WEAK else ""
    opaque = text[len(weak) :]
    if len(opaque) >= 2 and opaque[0] == opaque[-1] == _QUOTE:
        opaque = opaque[1:-1]
    return f"{weak}{_QUOTE}{opaque}{_QUOTE}" if opaque else ""


def normal_etags(etags: pa.StringArray) -> pa.StringArray:
    """`normal_etag` of many; a null becomes an empty text."""
    import pyarrow as pa  # commands without rows start faster
    import pyarrow.compute as pc

    etags = pc.fill_null(etags, "")
    # Nearly all stores list quoted ETags: one comparison for a page.
    is_quoted = pc.and_(pc.starts_with(etags, _QUOTE), pc.greater(pc.utf8_length(etags), 2))
    if pc.all(is_quoted).as_py() is not False:
        return etags
    return pa.array(list(map(normal_etag, etags.to_pylist())), pa.string())


def is_strong(etag: str | None) -> bool:
    """True if an etag names one content: it is there, and not weak (https://www.rfc-editor.org/rfc/rfc9110#name-etag)."""
    return bool(etag) and not etag.startswith(_WEAK)  # type: ignore[union-attr]


def same_etag(first: str | None, second: str | None) -> bool:
    """True if two ETags are equal.  A missing ETag equals no ETag, not even a second missing one."""
    return bool(first) and bool(second) and normal_etag(first) == normal_etag(second)
