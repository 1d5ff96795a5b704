"""Versions of objects that are read again at a user's request, of the kind that the ledger has for their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from actors.files import FileVersion, PathKey
from state.store.store import StateStore
from state.tables.fingerprint import delivery_fingerprint, is_delivery
from state.tables.keys import encode_key

_FIELDS = ["source", "path", "version", "last_modified"]
_NOTES = ["changed_epoch", "deleted_epoch"]


def delivered_versions(store: StateStore, files: Sequence[FileVersion]) -> list[FileVersion]:
    """The files, with a version by delivery where an earlier delivery of their name is in the ledger.

    By content, the object would have the version of the deleted delivery.  It would replace the row of that delivery,
    and a later start would take the object for another delivery, and read it twice.

    Args:
        store: a handle on the store.
        files: the objects, in versions by content.
    """
    prefixes = [encode_key(file.source, file.path) for file in files]
    known: dict[PathKey, list[Mapping[str, Any]]] = {}
    for table, fields in (("ledger", [*_FIELDS, *_NOTES]), ("queue", _FIELDS)):
        for row in store.scan(table, prefixes=prefixes, fields=fields).to_pylist():
            known.setdefault((row["source"], row["path"]), []).append(row)
    return [
        replace(file, version=delivery_fingerprint(file.version, file.last_modified))
        if any(_is_earlier(row, file) for row in known.get((file.source, file.path), ()))
        else file
        for file in files
    ]


def _is_earlier(row: Mapping[str, Any], file: FileVersion) -> bool:
    """True if a row is of a delivery, or of the same bytes that were deleted before this object was written."""
    if is_delivery(row["version"]):
        return True
    is_noted = any(row.get(name) is not None for name in _NOTES)
    is_later = int(row["last_modified"].timestamp()) != int(file.last_modified.timestamp())
    return bool(row["version"] == file.version and is_noted and is_later)
