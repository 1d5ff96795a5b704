"""Folds of `state.lance`: rows of the log become runs of their tables, and runs of a table become one.

A *flush* takes the oldest fragments of the log, and writes a run for each of their tables, together with its last runs
if they are small.  A *merge* makes one run of neighbouring runs of a table, or only notes that pieces, whose keys no
other run has, belong to it from now on.

A fold drops a row that a later row supersedes.  It drops a deletion, and a patch without its row, only with the oldest
run of the table: otherwise they may still apply to an older row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance import FragmentMetadata
from lance.fragment import write_fragments

from state.runs.directory import Directory, Piece, Run
from state.runs.fragments import data_file, in_groups
from state.runs.ledger_recount import recounted
from state.runs.log_rows import LogRows
from state.runs.piece_writer import PIECE_ROWS, PieceWriter
from state.runs.recent_rows import RecentRows
from state.runs.sources import BlockIndexes, RunSource, Source
from state.runs.table_reader import SLICE_ROWS, TableReader, merged
from state.store.store import StagedFold
from state.tables.ledger_counts import COUNTED, of_rows
from state.tables.tables import PUT, state_rows
from state.upkeep.fold_plan import FOLD_FACTOR, runs_to_merge


@dataclass(frozen=True)
class FoldSizes:
    """The sizes that decide when a fold is due, and how much it takes.

    Args:
        log_fragments: a flush is due from this number of fragments in the log.
        log_rows: a flush is due from this number of rows in the log.
        flushed_rows: the most rows of a flush.
        small_rows: the size of the smallest tier of runs, in rows.
        piece_rows: the most rows of a piece.
    """

    log_fragments: int = FOLD_FACTOR
    log_rows: int = 1 << 16
    flushed_rows: int = 1 << 18
    small_rows: int = 256
    piece_rows: int = PIECE_ROWS


@dataclass(frozen=True)
class _LogFragment:
    fragment: lance.LanceFragment
    rows: int
    first_epoch: int
    last_epoch: int
    tables: frozenset[str]


@dataclass
class _Fold:
    """A fold in the making.

    Args:
        gone: the pieces that it replaces or renames.
        new: the pieces in their place.
        rows_before: rows that it has read.
    """

    gone: list[Piece] = field(default_factory=list)
    new: list[Piece] = field(default_factory=list)
    fragments: list[FragmentMetadata] = field(default_factory=list)
    rows_before: int = 0

    def add(self, writer: PieceWriter) -> None:
        self.new += writer.pieces
        self.fragments += writer.fragments


class StateFolder:
    """Stages folds of one `state.lance`, and caches its reads of the fragments of the log.

    Args:
        indexes: the indexes of the pieces.
        sizes: decide when a fold is due.
    """

    def __init__(self, indexes: BlockIndexes, sizes: FoldSizes = FoldSizes()) -> None:
        self._indexes, self._sizes = indexes, sizes
        self._log: dict[str, _LogFragment] = {}

    def stage(
        self,
        dataset: lance.LanceDataset,
        directory: Directory,
        log: Sequence[lance.LanceFragment],
        *,
        directory_path: str,
        epoch: int,
        term: int,
    ) -> StagedFold | None:
        """Reads, folds and writes the next run; None if no fold is due.

        Args:
            dataset: the version to fold; commits may run at the same time.
            log: the fragments of its log, in the order in which they were committed.
            directory_path: the data file of the directory.
            epoch: the last committed epoch.  Only fragments before it are folded: an amendment may still add rows to
                this epoch.
            term: the term of the head.

        Raises:
            OSError, RuntimeError: an error of Lance.
        """
        flushed = self._due(dataset, log, epoch)
        fold = _Fold()
        log_rows = self._rows_of(dataset, flushed)
        if flushed:
            self._flush(dataset, directory, log_rows, fold)
        elif not self._merge(dataset, directory, fold):
            return None
        left = directory.replaced(fold.gone, fold.new)
        if flushed:
            left = replace(left, counts=self._recounted(dataset, directory, log_rows))
        [written] = write_fragments(state_rows(left.to_delta().tables.items(), epoch), dataset, mode="append")
        kept = {piece.path for piece in fold.new}
        gone = {piece.path for piece in fold.gone if piece.path not in kept}
        removed = [each.fragment for each in flushed]
        removed += [fragment for fragment in dataset.get_fragments() if data_file(fragment) in gone] if gone else []
        return StagedFold(
            term,
            tuple(sorted(fragment.fragment_id for fragment in removed)),
            tuple(fold.fragments),
            directory=written,
            directory_before=directory_path,
            rows_before=fold.rows_before,
            rows_after=sum(piece.rows for piece in fold.new if piece.path not in {each.path for each in fold.gone}),
        )

    def _rows_of(self, dataset: lance.LanceDataset, log: Sequence[_LogFragment]) -> LogRows:
        tables = sorted({table for each in log for table in each.tables})
        return LogRows(dataset, [each.fragment for each in log], tables, self._indexes)

    def _due(self, dataset: lance.LanceDataset, log: Sequence[lance.LanceFragment], epoch: int) -> list[_LogFragment]:
        """The fragments of the log to flush: its oldest ones, once they are many."""
        paths = [data_file(fragment) for fragment in log]
        new = [fragment for path, fragment in zip(paths, log, strict=True) if path not in self._log]
        read = self._log | {data_file(each.fragment): each for each in _read_log(dataset, new, self._indexes.recent)}
        known = {path: read[path] for path in paths}
        self._indexes.recent.drop(self._log.keys() - known.keys())
        self._log = known
        # In the order of epochs: a fragment may have been staged long before its commit.
        settled = [each for each in known.values() if each.last_epoch < epoch]
        settled.sort(key=lambda each: (each.first_epoch, each.fragment.fragment_id))
        if len(settled) < self._sizes.log_fragments and sum(each.rows for each in settled) < self._sizes.log_rows:
            return []
        rows = 0
        for count, each in enumerate(settled):
            rows += each.rows
            if rows > self._sizes.flushed_rows:
                return settled[: max(1, count)]
        return settled

    def _flush(self, dataset: lance.LanceDataset, directory: Directory, log: LogRows, fold: _Fold) -> None:
        for table in log.tables:
            sources: list[Source] = [*log.sources(table)]
            rows = sum(source.rows for source in sources)
            runs = directory.runs(table)
            small: list[Run] = []
            while runs and runs[-1].rows <= max(self._sizes.small_rows, rows):
                small.insert(0, runs.pop())
                rows += small[0].rows
            fold.gone += [piece for run in small for piece in run.pieces]
            sources = [*self._sources(dataset, table, small), *sources]
            writer = PieceWriter(dataset, table, directory.next_run, self._sizes.piece_rows)
            writer.write(_kept(merged(table, sources), is_oldest=not runs), rows)
            fold.add(writer)
            fold.rows_before += rows

    def _recounted(
        self, dataset: lance.LanceDataset, directory: Directory, log: LogRows
    ) -> tuple[Mapping[str, Any], ...]:
        """The counts of the ledger after a flush."""
        if "ledger" not in log.tables:
            return directory.counts
        folded = TableReader(dataset, directory, [], self._indexes, "ledger", COUNTED)
        changes = merged("ledger", log.sources("ledger", COUNTED))
        counts = recounted(of_rows(directory.counts), folded, changes)
        return tuple(counts.to_pylist())

    def _merge(self, dataset: lance.LanceDataset, directory: Directory, fold: _Fold) -> bool:
        """Merges runs of the first table that needs it; False if no table does."""
        for table in directory.tables:
            runs = directory.runs(table)
            chosen = runs_to_merge([(run.rows, run.deletes) for run in runs], small=self._sizes.small_rows)
            if chosen is not None:
                some = runs[chosen.start : chosen.stop]
                writer = PieceWriter(dataset, table, some[-1].number, self._sizes.piece_rows)
                for group in self._groups([piece for run in some for piece in run.pieces], is_oldest=chosen.start == 0):
                    fold.gone += group
                    if len(group) == 1 and self._stays(group[0], is_oldest=chosen.start == 0):
                        fold.new.append(replace(group[0], run=writer.run))
                        continue
                    rows = sum(piece.rows for piece in group)
                    own = {piece.path for piece in group}
                    left = [Run(run.number, tuple(each for each in run.pieces if each.path in own)) for run in some]
                    sources = self._sources(dataset, table, [run for run in left if run.pieces])
                    writer.write(_kept(merged(table, sources), is_oldest=chosen.start == 0), rows)
                    fold.rows_before += rows
                fold.add(writer)
                return True
        return False

    def _stays(self, piece: Piece, *, is_oldest: bool) -> bool:
        """True if a piece, whose keys no other run has, need not be written again."""
        # The deletions and patches of the oldest run change no row: writing the piece again drops them.
        return piece.rows * 4 >= self._sizes.piece_rows and not (is_oldest and (piece.deletes or piece.patches))

    def _groups(self, pieces: Sequence[Piece], *, is_oldest: bool) -> Iterator[list[Piece]]:
        """Pieces that are merged together: pieces whose keys overlap, and small neighbours of them."""
        overlapping: list[list[Piece]] = []
        last_key = b""
        for piece in sorted(pieces, key=lambda each: each.first_key):
            if overlapping and piece.first_key <= last_key:
                overlapping[-1].append(piece)
            else:
                overlapping.append([piece])
            last_key = max(last_key, piece.last_key) if len(overlapping[-1]) > 1 else piece.last_key
        group: list[Piece] = []
        for each in overlapping:
            if len(each) == 1 and self._stays(each[0], is_oldest=is_oldest):
                if group:
                    yield group
                yield each
                group = []
            else:
                group += each
        if group:
            yield group

    def _sources(self, dataset: lance.LanceDataset, table: str, runs: Sequence[Run]) -> list[Source]:
        fragments = self._indexes.fragments.of(dataset).by_path
        make = partial(RunSource, fragments=fragments, indexes=self._indexes, fields=None)
        return [make(table, run) for run in runs]


def _read_log(
    dataset: lance.LanceDataset, fragments: Sequence[lance.LanceFragment], recent: RecentRows
) -> Iterator[_LogFragment]:
    for group in in_groups(fragments, SLICE_ROWS):
        every = recent.read(dataset, group, ["table", "epoch"])
        at = 0
        for fragment in group:
            rows = every.slice(at, fragment.count_rows())
            at += rows.num_rows
            ends = pc.min_max(rows["epoch"]).as_py()
            tables = frozenset(rows["table"].unique().to_pylist())
            yield _LogFragment(fragment, rows.num_rows, ends["min"], ends["max"], tables)


def _kept(slices: Iterator[pa.Table], *, is_oldest: bool) -> Iterator[pa.Table]:
    """The rows that a fold writes."""
    for rows in slices:
        if is_oldest:
            rows = rows.filter(pc.equal(rows["op"], pa.scalar(PUT, pa.uint8())))
        if rows.num_rows:
            yield rows
