"""Questions of a list step about names, with their answers by one index and by several."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from actors.names.seen_index import SeenIndex, Sight

Rows: TypeAlias = npt.NDArray[np.int64]
_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result")
Asking: TypeAlias = Generator["Question[Any]", Any, _Result]
"""A step that asks questions on its way to a result; `yield from question.asked()` is the answer."""


class Question(Generic[_Answer]):
    """One question."""

    @property
    def about(self) -> Sequence[bytes] | None:
        """The fingerprints that it is about; None if it is about all names."""
        return None

    def asked(self) -> Asking[_Answer]:
        """Asks from within a step."""
        answer: _Answer = yield self
        return answer

    def answer(self, index: SeenIndex) -> _Answer:
        """The answer of an index, which may mark names."""
        raise NotImplementedError

    def part(self, rows: Rows, shards: int) -> Question[_Answer]:
        """The part of the question for one shard.

        Args:
            rows: the positions of its keys; empty if the question is about all names.
            shards: the number of all shards.
        """
        raise NotImplementedError

    def joined(self, parts: Sequence[tuple[Rows, _Answer]]) -> _Answer:
        """The answer that one index of all names would give.

        Args:
            parts: the rows of each part, as for `part`, and the answer to it.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class KnownName:
    """A name, as the index knows it.

    Args:
        version: the version that was handed on; None if no version was.
        is_deleted: whether that version is read again when the file returns.
        deleted_delivery: the delivery that the run has deleted; None without one.
        is_unread: whether that version vanished while the views have the rows of an earlier version.
    """

    version: bytes | None
    is_deleted: bool = False
    deleted_delivery: bytes | None = None
    is_unread: bool = False


@dataclass(frozen=True)
class Shown:
    """The names of a page, as the index knows them.

    Args:
        sights: the `Sight` of each.
        before: row → the earlier state of the name, for names with another version and for names that have returned.
    """

    sights: npt.NDArray[np.uint8]
    before: dict[int, KnownName] = field(default_factory=dict)


@dataclass(frozen=True)
class ShowNames(Question[Shown]):
    """A listing shows names; see `SeenIndex.show`.

    Args:
        keys: their fingerprints.
        versions: the versions in which it shows them.
    """

    keys: Sequence[bytes]
    versions: Sequence[bytes]

    @property
    def about(self) -> Sequence[bytes]:
        return self.keys

    def answer(self, index: SeenIndex) -> Shown:
        deleted = index.deleted(self.keys)
        sights = index.show(self.keys, self.versions)
        rows = np.flatnonzero((sights != Sight.NEW) & (sights != Sight.SAME)).tolist()
        known = index.lookup([self.keys[row] for row in rows])
        return Shown(
            sights,
            {row: KnownName(before, row in deleted, deleted.get(row)) for row, before in zip(rows, known, strict=True)},
        )

    def part(self, rows: Rows, shards: int) -> ShowNames:
        return ShowNames([self.keys[row] for row in rows], [self.versions[row] for row in rows])

    def joined(self, parts: Sequence[tuple[Rows, Shown]]) -> Shown:
        whole = Shown(np.zeros(len(self.keys), np.uint8))
        for rows, shown in parts:
            whole.sights[rows] = shown.sights
            whole.before.update((int(rows[row]), before) for row, before in shown.before.items())
        return whole


@dataclass(frozen=True)
class FindNames(Question[list[KnownName]]):
    """Asks for the versions of these names that were handed on; the answer has one for each key.

    Args:
        keys: their fingerprints.
    """

    keys: Sequence[bytes]

    @property
    def about(self) -> Sequence[bytes]:
        return self.keys

    def answer(self, index: SeenIndex) -> list[KnownName]:
        versions, deleted, unread = index.lookup(self.keys), index.deleted(self.keys), index.unread(self.keys)
        return [
            KnownName(version, version is not None and row in deleted, deleted.get(row), row in unread)
            for row, version in enumerate(versions)
        ]

    def part(self, rows: Rows, shards: int) -> FindNames:
        return FindNames([self.keys[row] for row in rows])

    def joined(self, parts: Sequence[tuple[Rows, list[KnownName]]]) -> list[KnownName]:
        found = {int(row): each for rows, names in parts for row, each in zip(rows, names, strict=True)}
        return [found[row] for row in range(len(self.keys))]


class _Sum(Question[int]):
    """A number that the shards have parts of."""

    def part(self, rows: Rows, shards: int) -> Question[int]:
        return self

    def joined(self, parts: Sequence[tuple[Rows, int]]) -> int:
        return sum(count for _, count in parts)


@dataclass(frozen=True)
class CountPresent(_Sum):
    """See `SeenIndex.count_present`."""

    def answer(self, index: SeenIndex) -> int:
        return index.count_present()


@dataclass(frozen=True)
class CountUnshown(_Sum):
    """See `SeenIndex.count_unshown`; names that were skipped count."""

    def answer(self, index: SeenIndex) -> int:
        return index.count_unshown(0)


@dataclass(frozen=True)
class TakeMissing(Question[dict[bytes, bytes]]):
    """See `SeenIndex.take_missing`."""

    limit: int

    def answer(self, index: SeenIndex) -> dict[bytes, bytes]:
        return index.take_missing(self.limit)

    def part(self, rows: Rows, shards: int) -> TakeMissing:
        return TakeMissing(max(1, self.limit // shards))

    def joined(self, parts: Sequence[tuple[Rows, dict[bytes, bytes]]]) -> dict[bytes, bytes]:
        return {key: version for _, missing in parts for key, version in missing.items()}
