"""The move of vnodes from some fetch actors to others while a pipeline runs.

First the new fetch actors are made.  Then the owners open no more files of the vnodes that will move, and report when
none of these files is open.  The barrier that moves the vnodes follows the last report, so that no file is read twice.
After half of the patience, open files stop at the end of their piece.  After all of it, the barrier is sent in any
case, and the new owner reads the rows again that were not emitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from actors.coordination.instructions import Connect, CoordinateInstruction, EndFetchers, PrepareMove
from actors.protocol.reports import FetchProgress
from actors.protocol.vnode_mapping import VnodeMapping, fetcher_names

PATIENCE_S = 10.0
_REST_AFTER = 0.5


@dataclass
class _Move:
    """One change of ownership.

    `asked` is the rescaling that it answers, `since_s` the time from which the new fetch actors are there, `rests`
    whether open files have to stop, and `epoch` the epoch that its barrier ends.
    """

    number: int
    after: VnodeMapping
    asked: int
    since_s: float | None = None
    rests: bool = False
    is_due: bool = False
    epoch: int | None = None


class Rescaling:
    """Takes the fetch actors of an attempt from one number to another, one move after the other.

    A name is never used twice: a late report of a fetch actor that has left cannot concern another actor.

    `asked` is the number of rescalings asked for, `over` the last of them that is done; the latest one decides.

    Args:
        num_fetchers: the number of fetch actors at the start.
        patience_s: seconds that a barrier waits for open files; after half of them these have to rest.
        ordered: see `VnodeMapping`.
    """

    def __init__(self, num_fetchers: int, patience_s: float = PATIENCE_S, ordered: Iterable[str] = ()) -> None:
        self._patience_s = patience_s
        self.mapping = VnodeMapping.even(fetcher_names(0, num_fetchers), ordered)
        self._num_names = num_fetchers
        self._wanted = num_fetchers
        self._move: _Move | None = None
        self._moves = 0
        self.asked = self.over = 0

    @property
    def num_fetchers(self) -> int:
        """The number of fetch actors that own vnodes, from the last barrier on."""
        return len(self.mapping.owners)

    @property
    def wanted(self) -> int:
        """The number of fetch actors that was asked for last."""
        return self._wanted

    @property
    def is_under_way(self) -> bool:
        """True if vnodes are moving, or about to."""
        return self._move is not None

    def ask(self, num_fetchers: int) -> list[CoordinateInstruction]:
        """Asks for a number of fetch actors."""
        self._wanted = num_fetchers
        self.asked += 1
        return self._begin()

    def on_connected(self, now_s: float) -> list[CoordinateInstruction]:
        """The new fetch actors are there.

        Args:
            now_s: time of the monotonic clock.
        """
        assert self._move is not None, "the fetch actors were asked for"
        self._move.since_s = now_s
        return [self._prepare(self._move)]

    def advance(self, now_s: float, fetchers: Iterable[FetchProgress]) -> list[CoordinateInstruction]:
        """Looks at the owners of the vnodes that will move: `due` is set when they are ready, or when time is up.

        Args:
            now_s: time of the monotonic clock.
            fetchers: the latest progress of the fetch actors.
        """
        move = self._move
        if move is None or move.since_s is None or move.is_due:
            return []
        owners = set(self.mapping.owners)
        elapsed_s = now_s - move.since_s
        ready = all(each.ready >= move.number for each in fetchers if each.actor in owners)
        move.is_due = ready or elapsed_s >= self._patience_s
        if move.is_due or move.rests or elapsed_s < _REST_AFTER * self._patience_s:
            return []
        move.rests = True
        return [self._prepare(move)]

    @property
    def due(self) -> VnodeMapping | None:
        """The owners of the vnodes from the next barrier on, if it is time to move them."""
        move = self._move
        return move.after if move is not None and move.is_due and move.epoch is None else None

    def wake_s(self) -> float | None:
        """The latest time of the next call of `advance`; None if time decides nothing."""
        move = self._move
        if move is None or move.since_s is None or move.is_due:
            return None
        return move.since_s + self._patience_s * (1.0 if move.rests else _REST_AFTER)

    def on_barrier(self, epoch: int) -> None:
        """The barrier that ends an epoch moves the vnodes."""
        assert self._move is not None and self._move.is_due, "the barrier was due"
        self._move.epoch = epoch

    def on_epoch_over(self, epoch: int) -> list[CoordinateInstruction]:
        """An epoch was committed, or had nothing to commit."""
        move = self._move
        if move is None or move.epoch != epoch:
            return []
        before, self.mapping, self._move = self.mapping, move.after, None
        self.over = move.asked
        leaving = tuple(name for name in before.owners if name not in self.mapping.owners)
        return [*([EndFetchers(leaving)] if leaving else []), *self._begin()]

    def _begin(self) -> list[CoordinateInstruction]:
        if self._move is not None:
            return []
        if self._wanted == self.num_fetchers:
            self.over = self.asked
            return []
        kept = self.mapping.owners[: self._wanted]
        new = fetcher_names(self._num_names, self._wanted - len(kept))
        self._num_names += len(new)
        self._moves += 1
        self._move = _Move(self._moves, self.mapping.rescaled([*kept, *new]), self.asked)
        return [Connect(self.mapping, self._move.after)]

    def _prepare(self, move: _Move) -> PrepareMove:
        return PrepareMove(move.number, self.mapping, move.after, move.rests)
