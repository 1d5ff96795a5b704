"""Expectations of model views, over model rows as Arrow tables: `ExpectationCounts` of production counts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

import pyarrow as pa

from actors.files import FileKey
from state.errors import EpochExpiredError, NotFoundError
from state.tables.expectations import OnViolation
from state.tables.fingerprint import path_fingerprint
from state.tables.group_key import KEY_COLUMN
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD
from tests.simulation.model_views.model_view import EveryRow, GroupedRows, ModelView
from tests.simulation.world.file_rows import Span
from tests.simulation.world.simulated_root import SimulatedRoot

_HOLDING = ("rows", "groups")
_NAME, _CONDITION = "it is right", "model"
_IS_WRONG, _AT = "is_wrong", "at"
_COLUMNS = pa.schema([(_IS_WRONG, pa.bool_()), (_AT, pa.string())])


def expectations_of(view: ModelView) -> dict[str, str]:
    """The expectations of a view: of each one of single rows or of groups that is no copy."""
    return {_NAME: _CONDITION} if isinstance(view, EveryRow | GroupedRows) and not view.is_full else {}


def on_violation(view: str) -> OnViolation:
    """The reaction to rows of a view that violate its expectations."""
    return "hold" if view in _HOLDING else "count"


def wrong_rows(rows: Any) -> list[object]:
    """The rows of a view that violate its expectation: each by its file and position, or its group."""
    if isinstance(rows, Mapping):
        return [group for group, (_, total) in rows.items() if total % 4 == 0]
    return [(file, at) for file, start, end in rows for at in range(start, end) if _is_wrong(file, at)]


@lru_cache(maxsize=4096)
def _is_wrong(file: FileKey, row: int) -> bool:
    return row == 1 and crc32(repr(file).encode()) % 3 == 0


class ModelConditions:
    """The condition over the rows of a view."""

    def unfulfilled(self, rows: pa.Table) -> tuple[dict[str, pa.Array], dict[str, str]]:
        return {_NAME: rows[_IS_WRONG].combine_chunks()}, {}


class ModelVersionRows:
    """The rows of a model view at one version.

    Args:
        root: by the materializer's way.
        has_files: whether rows of files name their file.
        version: the version.
    """

    columns = _COLUMNS

    def __init__(self, root: SimulatedRoot, has_files: bool, version: ViewVersion) -> None:
        self.version = version
        self._rows: Any = root.view_rows(version.path, version.version)
        is_grouped = isinstance(self._rows, Mapping)
        self.origin = KEY_COLUMN if is_grouped else FILE_FIELD.name if has_files else None

    def count(self) -> int:
        return len(self._places())

    def parts(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        yield self._table(columns)

    def changed_since(self, earlier: ModelVersionRows, columns: Sequence[str]) -> tuple[pa.Table, pa.Table]:
        return earlier._table(columns), self._table(columns)

    def _table(self, columns: Sequence[str]) -> pa.Table:
        wrong, places = set(wrong_rows(self._rows)), self._places()
        arrays: dict[str, pa.Array] = {
            _IS_WRONG: pa.array([place in wrong for place in places], pa.bool_()),
            _AT: pa.array(map(repr, places), pa.string()),
        }
        if self.origin == KEY_COLUMN:
            arrays[KEY_COLUMN] = arrays[_AT]
        elif self.origin is not None:
            files = [path_fingerprint(file[0], file[1]) for file, _ in places]
            arrays[FILE_FIELD.name] = pa.array(files, FILE_FIELD.type)
        return pa.table(arrays).select(list(columns))

    def _places(self) -> list[Any]:
        if isinstance(self._rows, Mapping):
            return list(self._rows)
        spans: Sequence[Span] = self._rows
        return [(file, at) for file, start, end in spans for at in range(start, end)]


def opened_rows(root: SimulatedRoot, has_files: bool, version: ViewVersion) -> ModelVersionRows:
    """The rows of a version.

    Raises:
        EpochExpiredError: it is no longer retained.
    """
    try:
        return ModelVersionRows(root, has_files, version)
    except NotFoundError as error:
        raise EpochExpiredError(f"version {version.version} of {version.path} is gone") from error
