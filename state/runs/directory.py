"""The directory of the folded fragments of `state.lance`: one row, replaced by every fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from state.tables.delta import Change, Delta
from state.tables.tables import PUT


@dataclass(frozen=True)
class Piece:
    """A folded fragment: rows of one table, sorted by key, each key once.

    Args:
        path: its data file; the id of the fragment is not known before the commit.
        run: the number of its run; of two runs of a table the higher has the later rows.
        blocks: the number of entries of its index, which are rows behind the others; 0 for a small piece.
        deletes: the number of rows that are deletions.
        patches: the number of rows that are patches.
        first_key: the lowest key.
        last_key: the highest key.
    """

    path: str
    table: str
    run: int
    rows: int
    blocks: int
    deletes: int
    patches: int
    first_key: bytes
    last_key: bytes

    def overlaps(self, start: bytes | None, end: bytes | None) -> bool:
        """True if it may have a key of at least `start` and less than `end`."""
        return (end is None or self.first_key < end) and (start is None or start <= self.last_key)


@dataclass(frozen=True)
class Run:
    """A sorted run of one table: pieces in the order of their keys, which do not overlap."""

    number: int
    pieces: tuple[Piece, ...]

    @cached_property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    @cached_property
    def deletes(self) -> int:
        return sum(piece.deletes for piece in self.pieces)


@dataclass(frozen=True)
class Directory:
    """The pieces of all tables at one version of the store.

    Args:
        counts: the counts of the ledger, as far as it is folded, see `ledger_counts`.
    """

    pieces: tuple[Piece, ...] = ()
    counts: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Directory:
        return cls(tuple(Piece(**each) for each in row["pieces"]), tuple(row["counts"]))

    def to_delta(self) -> Delta:
        """The directory as the one row of the table `directory`."""
        fields = {"pieces": [dict(vars(piece)) for piece in self.pieces], "counts": list(self.counts)}
        return Delta({"directory": {b"": Change(PUT, 0, fields)}})

    @cached_property
    def paths(self) -> frozenset[str]:
        """The data files of all pieces."""
        return frozenset(piece.path for piece in self.pieces)

    @property
    def tables(self) -> list[str]:
        """The tables that have a run, by name."""
        return sorted({piece.table for piece in self.pieces})

    @property
    def next_run(self) -> int:
        """A number that is higher than the number of every run."""
        return max((piece.run for piece in self.pieces), default=0) + 1

    def runs(self, table: str) -> list[Run]:
        """The runs of a table, oldest first."""
        by_number: dict[int, list[Piece]] = {}
        for piece in self.pieces:
            if piece.table == table:
                by_number.setdefault(piece.run, []).append(piece)
        return [
            Run(number, tuple(sorted(by_number[number], key=lambda piece: piece.first_key)))
            for number in sorted(by_number)
        ]

    def replaced(self, old: Iterable[Piece], new: Iterable[Piece]) -> Directory:
        """The directory with other pieces in place of some."""
        gone = {piece.path for piece in old}
        return replace(self, pieces=(*(piece for piece in self.pieces if piece.path not in gone), *new))
