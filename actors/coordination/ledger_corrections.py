"""Ledger rows of files whose rows are retracted: changed by the commit that carries the correction.

A fetch actor does not know of which versions of an object the views hold rows.  At the commit the ledger does, since
every earlier epoch is committed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from typing import Any

from actors.coordination.instructions import Commit
from actors.files import PathKey
from actors.protocol.reports import CorrectedFile
from state.store.store import StateStore
from state.tables.delta import Delta, DeltaBuilder
from state.tables.keys import decode_key, encode_key
from state.tables.tables import PUT, REMOVED_STATUSES, TABLES
from state.vnode import vnode_of

# Of a thousand rows each field takes tens of milliseconds; source, path and version are in the key.
_DECIDING = ("status", "rows_read", "removed_epoch")
_FILE = ("version",)
_EVERY = tuple(TABLES["ledger"].names)
_Rows = Mapping[bytes, Mapping[str, Any]]


def corrected_delta(store: StateStore, commit: Commit) -> Delta:
    """The changes of an epoch, with the changes of its corrections to the ledger and the quarantine.

    Args:
        store: the store as of the epoch before.
        commit: the commit of the epoch.
    """
    if not commit.corrected:
        return commit.delta
    paths = {(each.source, each.path) for each in commit.corrected}
    ledger, quarantine = _stored(store, "ledger", paths, _DECIDING), _stored(store, "quarantine", paths)
    new_ledger, new_quarantine = _new(commit.delta, "ledger", paths), _new(commit.delta, "quarantine", paths)
    # Rows that an epoch writes again may have to stay as they were: of these all fields are needed.
    again = {path: rows.keys() & ledger[path].keys() for path, rows in new_ledger.items()}
    ledger |= _stored(store, "ledger", {path for path, keys in again.items() if keys}, _EVERY)
    # A correction changes the rows as the one before it in this epoch has left them.
    rows = {path: {**ledger[path], **new_ledger[path]} for path in paths}
    delta = DeltaBuilder()
    for each in commit.corrected:
        path = each.source, each.path
        _correct_ledger(each, commit.epoch, ledger[path], rows[path], delta)
        if each.outcome != "kept":
            _correct_quarantine(each, quarantine[path], new_quarantine[path], delta)
    return Delta.merge([commit.delta, delta.build()])


def _correct_ledger(
    each: CorrectedFile, epoch: int, stored: _Rows, rows: dict[bytes, Mapping[str, Any]], delta: DeltaBuilder
) -> None:
    vnode = vnode_of(each.path)
    for key, row in rows.items():
        before = stored.get(key)
        if each.outcome != "replaced" and before is not None and _holds_rows(before) and not row["rows_read"]:
            # It was being read once more, in vain: the rows of the earlier reading count.
            row = {**before, "error": row.get("error"), "deleted_epoch": row.get("deleted_epoch")}
            delta.put("ledger", key, vnode, **row)
        was_removed = row["status"] in REMOVED_STATUSES and row.get("removed_epoch") not in (None, epoch)
        is_replaced = each.outcome == "replaced" and row["version"] != each.version and row["rows_read"]
        if not was_removed and (is_replaced or each.outcome == "forgotten"):
            row = {**row, "status": each.outcome, "removed_epoch": epoch}
            delta.patch("ledger", key, vnode, status=each.outcome, removed_epoch=epoch)
        rows[key] = row


def _correct_quarantine(each: CorrectedFile, stored: _Rows, new: _Rows, delta: DeltaBuilder) -> None:
    """A version that is read again keeps only its new bad records; a forgotten file keeps none."""
    for key, row in (stored if each.outcome == "replaced" else {**stored, **new}).items():
        if each.outcome == "forgotten" or (row["version"] == each.version and key not in new):
            delta.delete("quarantine", key, vnode_of(each.path))


def _holds_rows(row: Mapping[str, Any]) -> bool:
    return bool(row["rows_read"]) and row["status"] not in REMOVED_STATUSES


def _stored(store: StateStore, table: str, paths: Set[PathKey], fields: Sequence[str] = _FILE) -> dict[PathKey, _Rows]:
    """Object → these fields of the committed rows of a table about it, by their keys."""
    found: dict[PathKey, dict[bytes, Mapping[str, Any]]] = {path: {} for path in paths}
    if paths:
        prefixes = sorted((encode_key(*path), path) for path in paths)
        starts = [prefix for prefix, _ in prefixes]
        for row in store.scan(table, prefixes=starts, fields=fields).to_pylist():
            prefix, path = prefixes[bisect_right(starts, row["key"]) - 1]
            # Of the key only the rest is decoded: source and path are known.
            version = decode_key(row["key"][len(prefix) :])[0]
            found[path][row["key"]] = {"version": version, **{name: row[name] for name in fields}}
    return dict(found)


def _new(delta: Delta, table: str, paths: Set[PathKey]) -> dict[PathKey, _Rows]:
    """Object → the rows about it that an epoch writes, by their keys."""
    found: dict[PathKey, dict[bytes, Mapping[str, Any]]] = {path: {} for path in paths}
    for key, change in delta.changes.get(table, {}).items():
        if change.op == PUT and (path := (change.fields["source"], change.fields["path"])) in paths:
            found[path][key] = change.fields
    return dict(found)
