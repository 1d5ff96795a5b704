"""Comparison of what two roots have read of their sources: the condition of a merge."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from actors.sources.source import SourceDefinition
from state.errors import UsageError
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.keys import encode_key
from state.tables.records import EpochRecord
from state.tables.tables import REMOVED_STATUSES

Side: TypeAlias = tuple[StateStore, Catalog, EpochRecord | None]
"""A store, its catalog, and the epoch to look at; None for the last version."""

_FIELDS = {"ledger": ("status", "rows_read", "rows_bad"), "queue": ("row_offset", "rows_bad")}
_EPOCHS = {"ledger": ("first_epoch", "done_epoch"), "queue": ("first_epoch",)}
_SHOWN = 3


def require_same_files(sources: Collection[str], root: Side, branch: Side) -> None:
    """Refuses two roots that have read other files, or other parts of files, of some sources.

    Args:
        root: the first of the two.

    Raises:
        UsageError: they differ; the message names the source and the first files.
    """
    for source in sorted(sources):
        definition = _require_same_source(source, root[1], branch[1])
        for table, fields in _FIELDS.items():
            # Rows show the epoch that has read them: then it must be the same one.
            epochs = _EPOCHS[table] if "epoch" in definition.metadata else ()
            left, right = (_rows(side, source, table, (*fields, *epochs)) for side in (root, branch))
            if differing := _first_differing(left, right):
                raise UsageError(
                    f"root and branch have not read the same files of {source}: they differ in "
                    f"{', '.join(differing)}; run both until they have caught up, and stop the root, then merge; or "
                    "run the root with the new views, which a backfill computes"
                )


def _require_same_source(source: str, root: Catalog, branch: Catalog) -> SourceDefinition:
    here, there = root.sources.get(source), branch.sources[source]
    definition = SourceDefinition.of_json(source, there.definition)
    reason = None
    if here is None:
        reason = "the root does not have"
    elif definition.table == "frame":
        reason = "stands below each root apart"
    elif SourceDefinition.of_json(source, here.definition) != definition or here.schema != there.schema:
        reason = "has another definition or schema in the root"
    if reason is not None:
        raise UsageError(
            f"a view of the branch reads {source}, which {reason}: run the root with the new views, which a backfill "
            "computes"
        )
    return definition


def _rows(side: Side, source: str, table: str, fields: Collection[str]) -> Iterator[pa.Table]:
    """The files that a root has read from a source, in the order of paths."""
    store, _, record = side
    start = encode_key(source)
    version = None if record is None else record.state_version
    names = ["key", "path", *fields]
    for rows in store.slices(table, start=start, end=start + b"\xff", fields=["path", *fields], state_version=version):
        rows = rows.filter(_has_rows(rows, table))
        if rows.num_rows:
            yield rows.select(names)


def _has_rows(rows: pa.Table, table: str) -> pa.ChunkedArray:
    """True for the versions of which rows are in the views.  A root stores other files only if a listing found them."""
    if table == "queue":
        return pc.greater(rows["row_offset"], 0)
    is_removed = pc.is_in(rows["status"], pa.array(REMOVED_STATUSES))
    return pc.and_(pc.greater(pc.fill_null(rows["rows_read"], 0), 0), pc.invert(is_removed))


def _first_differing(left: Iterator[pa.Table], right: Iterator[pa.Table]) -> list[str]:
    """Paths of the first files that differ; the rows of both sides come in the order of their keys."""
    here, there = next(left, None), next(right, None)
    while here is not None and there is not None:
        count = min(here.num_rows, there.num_rows)
        if not here.slice(0, count).equals(there.slice(0, count)):
            return _differing(here, there)
        here = here.slice(count) if here.num_rows > count else next(left, None)
        there = there.slice(count) if there.num_rows > count else next(right, None)
    rest = here if here is not None else there
    return [] if rest is None else rest["path"].slice(0, _SHOWN).to_pylist()


def _differing(here: pa.Table, there: pa.Table) -> list[str]:
    rows = [{tuple(row.values()): row["path"] for row in side.to_pylist()} for side in (here, there)]
    paths = [path for one, other in (rows, rows[::-1]) for row, path in one.items() if row not in other]
    return sorted(set(paths))[:_SHOWN]
