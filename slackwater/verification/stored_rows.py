"""Check of the stored rows of a source against the ledger: each ingested row once, and no other row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import lance
import pyarrow as pa

from slackwater.reading.recorded_source import IngestedFile, RecordedSource
from slackwater.verification.comparison import Differences, RowDifference
from state.tables.stored_rows import LINEAGE, PATH_COLUMN, ROW_COLUMN, VERSION_COLUMN, version_number

_EXAMPLES = 5
_File = tuple[str, int]


@dataclass(frozen=True)
class _Stored:
    """The stored rows of one file version: their number, their distinct positions, the first and the last position."""

    rows: int
    positions: int
    first: int
    last: int


def row_differences(source: RecordedSource, dataset: lance.LanceDataset) -> Differences | None:
    """The differences between the stored rows and the ingested rows of the ledger; None if they are equal.

    A file with the right number of rows, but other rows, counts as changed.

    Args:
        source: the source with its ingested files.
        dataset: the stored rows, at the version of the same epoch.
    """
    lineage = dataset.to_table(columns=LINEAGE.names)
    stored = _by_file(lineage)
    ingested = {(each.file.path, version_number(each.file.version)): each for each in source.files}
    bad = _with_bad_positions(lineage, ingested)
    missing = extra = changed = 0
    examples = []
    for file in sorted(stored.keys() | ingested.keys()):
        found, wanted = stored.get(file, _Stored(0, 0, 0, 0)), ingested.get(file)
        rows = 0 if wanted is None else wanted.rows - wanted.rows_bad
        if found.rows == rows and (wanted is None or not _is_wrong(found, wanted)) and file not in bad:
            continue
        missing += max(0, rows - found.rows)
        extra += max(0, found.rows - rows)
        changed += found.rows == rows
        examples.append(RowDifference(_example(file, found.rows, found.positions), _example(file, rows, rows)))
    return Differences(missing, extra, changed, tuple(examples[:_EXAMPLES])) if examples else None


def _by_file(lineage: pa.Table) -> dict[_File, _Stored]:
    wanted = [(ROW_COLUMN, how) for how in ("count", "count_distinct", "min", "max")]
    files = lineage.group_by([PATH_COLUMN, VERSION_COLUMN]).aggregate(wanted)
    keys = zip(files[PATH_COLUMN].to_pylist(), files[VERSION_COLUMN].to_pylist(), strict=True)
    columns = (files[f"{name}_{how}"].to_pylist() for name, how in wanted)
    return {key: _Stored(*values) for key, values in zip(keys, zip(*columns, strict=True), strict=True)}


def _is_wrong(found: _Stored, wanted: IngestedFile) -> bool:
    return found.positions != found.rows or (found.rows > 0 and (found.first < 0 or found.last >= wanted.rows))


def _with_bad_positions(lineage: pa.Table, files: Mapping[_File, IngestedFile]) -> set[_File]:
    """The files with a quarantined record among the stored rows."""
    bad = [(*file, row) for file, each in files.items() for row in each.bad]
    if not bad:
        return set()
    columns = (pa.array(values, field.type) for values, field in zip(zip(*bad, strict=True), LINEAGE, strict=True))
    stored = pa.table(list(columns), schema=LINEAGE).join(lineage, LINEAGE.names, join_type="left semi")
    return {(path, version) for path, version, _ in zip(*stored.to_pydict().values(), strict=True)}


def _example(file: _File, rows: int, positions: int) -> Mapping[str, object]:
    return {"path": file[0], "rows": rows, "positions": positions}
