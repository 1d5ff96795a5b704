"""The datasets of views in Lance beside those of a `MemoryDisk`, written by production's `ViewTable`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from spark_bridge.datasets.view_table import ViewTable
from state.errors import CommitRefusedError, NotFoundError, SlackwaterError
from state.lance import view_dataset
from state.lance.lance_access import open_dataset
from state.lance.lance_root import LanceRoot
from state.tables.group_key import KEY_COLUMN
from state.tables.records import ViewVersion
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.model_views.model_view import Pairs
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.file_rows import Span

_SPANS = pa.schema(
    [
        ("source", pa.string()),
        ("path", pa.string()),
        ("version", pa.binary()),
        ("start", pa.int64()),
        ("end", pa.int64()),
    ]
)
_GROUPS = pa.schema([(KEY_COLUMN, pa.string()), ("count", pa.int64()), ("total", pa.int64())])
_PAIRS = pa.schema([("left", pa.string()), ("right", pa.string())])
_VERSIONS_CHECKED = 3


class ViewTwins:
    """Writes each version of a model view to Lance, too: as appended, changed or replaced rows.

    Args:
        root: the root in Lance.
        disk: the simulated one.
    """

    def __init__(self, root: LanceRoot, disk: MemoryDisk) -> None:
        self._root, self._disk = root, disk
        self._handles: dict[tuple[str, int], ViewTable] = {}

    def commit(self, path: str, expected: int, before: Any, rows: Any) -> int | None:
        """The next version of a dataset, by a handle at the expected version; None if Lance refuses it.

        Args:
            path: the path of the dataset.
            expected: the version of the writer; 0 creates the dataset.
            before: its rows; None if it does not exist any more.
            rows: the rows of the next version.
        """
        try:
            table = self._create(path, rows) if expected == 0 else self._write(path, expected, before, rows)
        except (CommitRefusedError, NotFoundError):
            return None
        self._handles[path, table.version] = table
        return table.version

    def restore(self, path: str, version: int, term: int) -> int:
        """Makes a version the latest one."""
        return view_dataset.restore(self._root.location, ViewVersion("", path, version), term).version

    def tag(self, view: ViewVersion) -> None:
        """Moves the tag `committed`, and compares it."""
        view_dataset.tag_committed(self._root.location, view)
        tags = open_dataset(self._root.location.child(view.path)).tags.list()
        found, expected = tags["committed"]["version"], self._disk.datasets[view.path].committed
        if found != expected:
            raise PromiseBroken("twin", f"the tag of {view.path} is on version {expected}, and on {found} in Lance")

    def check_versions(self, path: str) -> None:
        """Compares the versions of a dataset, after a vacuum."""
        expected, there = {*self._disk.datasets[path].versions}, self._root.versions(path)
        if there != expected:
            raise PromiseBroken("twin", f"{path} has the versions {sorted(expected)}, and {sorted(there)} in Lance")

    def check_all(self) -> None:
        """Compares the datasets, their versions, and the rows of the last ones."""
        expected, there = {*self._disk.datasets}, {*self._root.datasets()}
        if there != expected:
            raise PromiseBroken("twin", f"the datasets are {sorted(expected)}, and {sorted(there)} in Lance")
        for path in sorted(expected):
            self.check_versions(path)
            for version, rows in sorted(self._disk.datasets[path].versions.items())[-_VERSIONS_CHECKED:]:
                self._check_rows(path, version, rows)

    def _create(self, path: str, rows: Any) -> ViewTable:
        return ViewTable.create(self._root.location.child(path), _table(rows))

    def _write(self, path: str, expected: int, before: Any, rows: Any) -> ViewTable:
        table = self._handles.pop((path, expected), None) or ViewTable.open(self._root.location.child(path), expected)
        if isinstance(rows, Mapping):
            changed = {key: group for key, group in rows.items() if before is None or before.get(key) != group}
            if before is None or before.keys() - rows.keys() or not changed:
                table.replace(_groups(rows))
            else:
                table.upsert(_groups(changed))
        elif isinstance(rows, Pairs):
            table.replace(_table(rows))
        elif before is not None and rows[: len(before)] == before and len(rows) > len(before):
            table.append(_spans(rows[len(before) :]))
        else:
            table.replace(_spans(rows))
        return table

    def _check_rows(self, path: str, version: int, rows: Any) -> None:
        try:
            stored = open_dataset(self._root.location.child(path), version).to_table()
        except SlackwaterError as error:
            raise PromiseBroken("twin", f"version {version} of {path} is not readable in Lance: {error}") from error
        expected, found = (
            sorted(map(tuple, map(dict.values, each.to_pylist())), key=repr) for each in (_table(rows), stored)
        )
        if expected != found:
            raise PromiseBroken("twin", f"version {version} of {path} has the rows {expected}, and {found} in Lance")


def _table(rows: Any) -> pa.Table:
    if isinstance(rows, Pairs):
        return pa.Table.from_pylist([pair._asdict() for pair in rows.rows], _PAIRS)
    return _groups(rows) if isinstance(rows, Mapping) else _spans(rows)


def _spans(spans: Iterable[Span]) -> pa.Table:
    values = [(*span.file, span.start, span.end) for span in spans]
    return pa.Table.from_pylist([dict(zip(_SPANS.names, each, strict=True)) for each in values], _SPANS)


def _groups(groups: Mapping[int, tuple[int, int]]) -> pa.Table:
    values = [(str(group), *counts) for group, counts in groups.items()]
    return pa.Table.from_pylist([dict(zip(_GROUPS.names, each, strict=True)) for each in values], _GROUPS)
