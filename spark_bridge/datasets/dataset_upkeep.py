"""The upkeep of one dataset: indexes of its keys and compaction of its fragments, in bounded tasks."""

from __future__ import annotations

import lance
import structlog

from spark_bridge.datasets.dataset_writer import DatasetWriter, commit_error, is_of_rows
from spark_bridge.datasets.index_audit import IndexAudit
from state.tables.group_key import KEY_COLUMN
from state.tables.stored_rows import FILE_FIELD, HASH_FIELD, JOIN_FIELD, ORIGIN_FIELD, PATH_COLUMN
from state.upkeep.fold_plan import due_runs, newest_to_merge

_INDEX_FROM_ROWS = 10_000
_TIDY_EVERY_COMMITS = 16
_FRAGMENT_FACTOR = 8
_INDEX_FACTOR = 4
_FLOOR = 4_096
_FULL = 100_000
# A look-up of a thousand keys takes 3 ms for each piece of the index; a merge takes 1 s for a million rows.
_FULL_INDEX = 250_000
_MOST_INDEXES = 64
# To read these rows without an index takes as long as a look-up in one more piece.
_INDEX_PIECE = 65_536
_ROW_BYTES = 64
# Each of these columns has an index: `exchange` and `rows_of` take the first that a dataset has, corrections the file.
_KEYS = (KEY_COLUMN, ORIGIN_FIELD.name, HASH_FIELD.name, JOIN_FIELD.name, FILE_FIELD.name, PATH_COLUMN)

_log = structlog.get_logger(actor="materializer")


class DatasetUpkeep:
    """Keeps look-ups and commits of a dataset fast.

    Args:
        writer: makes the versions of the dataset.
    """

    def __init__(self, writer: DatasetWriter) -> None:
        self._writer = writer
        self._commits = 0
        self._can_tidy = True
        # Columns whose index was wrong, and wrong again when it was rebuilt.
        self._scanned = set[str]()
        dataset = writer.dataset
        self.keys = [name for name in _KEYS if name in dataset.schema.names]
        self._indexed = bool(self.keys) and self._indices(dataset).keys() >= {*self.keys}
        self._unindexed = 0 if self._indexed else int(dataset.count_rows())

    def follow(self, new_rows: int) -> None:
        """Counts a commit, and the new rows that it has written."""
        self._commits += 1
        self._unindexed += new_rows

    def tidy(self, audit: IndexAudit | None = None) -> bool:
        """Does one bounded task that keeps look-ups and commits fast, due after 16 commits or after many new rows.

        It merges pieces of the index first and then the fragments that they cover: Lance does not merge fragments of
        different pieces.  Both merge in tiers, and large ones stay as they are, so that each task is small.  After a
        take-over has restored the view, Lance refuses these commits like all others.

        Args:
            audit: checks the indexes afterwards; None for no check.

        Returns:
            True if a task was due.

        Raises:
            CommitRefusedError, CommitUnknownError: as for any commit; the run recovers.
        """
        # Each look-up reads all rows that the index does not cover.
        is_long = bool(self.keys) and self._unindexed >= (_FULL if self._indexed else _INDEX_FROM_ROWS)
        has_pieces = self._commits >= _TIDY_EVERY_COMMITS
        if not self._can_tidy or (not is_long and not has_pieces):
            return False
        self._unindexed = 0
        location = self._writer.location
        try:
            with self._writer.rewriting() as dataset:
                if self.keys:
                    self._index(dataset)
                if has_pieces:
                    self._commits = 0
                    _compact(dataset)
                if audit is not None:
                    self._scanned |= audit.check(location, dataset, self.keys)
        except (OSError, RuntimeError, ValueError, NotImplementedError) as error:
            if not is_of_rows(error, location):
                raise commit_error(location, error) from error
            # The rows are as before, and right.  The run must not end with each attempt to make them faster.
            self._can_tidy = False
            _log.warning("a dataset is no longer compacted", dataset=str(location), error=str(error))
        return True

    def _index(self, dataset: lance.LanceDataset) -> None:
        names = self._indices(dataset)
        if self._indexed:
            for name in names.values():
                stats = dataset.stats.index_stats(name)
                if stats["num_unindexed_rows"] < _INDEX_PIECE:
                    self._unindexed = max(self._unindexed, stats["num_unindexed_rows"])
                    continue
                sizes = stats["num_indexed_rows_per_delta"]
                merged = newest_to_merge(sizes, full=_FULL_INDEX, factor=_INDEX_FACTOR, most=_MOST_INDEXES)
                dataset.optimize.optimize_indices(num_indices_to_merge=merged, index_names=[name])
        elif dataset.count_rows() >= _INDEX_FROM_ROWS:
            for key in self.keys:
                if key not in names and key not in self._scanned:
                    dataset.create_scalar_index(key, "BTREE")
            self._indexed = True

    def _indices(self, dataset: lance.LanceDataset) -> dict[str, str]:
        """Key column → the name of its index; a column without an index is absent."""
        indices = dataset.describe_indices()
        return {key: index.name for index in indices for key in self.keys if key in index.field_names}


def _compact(dataset: lance.LanceDataset) -> None:
    fragments = dataset.get_fragments()
    own = [each for each in fragments if not _is_shared(each)]
    runs = due_runs([_size(each) for each in own], floor=_FLOOR, full=_FULL, factor=_FRAGMENT_FACTOR)
    if runs:
        merged = {own[at].fragment_id for run in runs for at in run}
        others = [each.fragment_id for each in fragments if each.fragment_id not in merged]
        dataset.optimize.compact_files(target_rows_per_fragment=_FULL, excluded_fragment_ids=others)


def _size(fragment: lance.LanceFragment) -> int:
    """The costs of rewriting a fragment, in rows; a wide row counts as several."""
    metadata = fragment.metadata
    written_bytes = sum(file.file_size_bytes or 0 for file in metadata.files)
    rows = int(fragment.count_rows())
    return max(rows, written_bytes * rows // (max(1, int(metadata.physical_rows)) * _ROW_BYTES))


def _is_shared(fragment: lance.LanceFragment) -> bool:
    """True if the rows are in the files of another dataset, like the rows with which a branch begins.

    Such fragments are not compacted: a compaction would copy the rows, and Lance 14 then looks for the index that it
    has changed in the other dataset.
    """
    return any(file.base_id is not None for file in fragment.metadata.files)
