"""How vnodes come from some fetch actors to others while a pipeline runs.

First the new fetch actors are made.  Then those who have the vnodes that will move open no more files of them, and
say so when nothing of them is under way.  The barrier that moves the vnodes comes when all have, so that no file is
read twice.  Where that takes too long, open files stop at the end of their piece; where even that does, the barrier
comes all the same, and what was read and not emitted is read again by the next owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from actors.coordination.instructions import Connect, EndFetchers, PrepareMove
from actors.coordination.instructions import CoordinateInstruction as Instruction
from actors.protocol.reports import FetchProgress
from actors.protocol.vnode_mapping import VnodeMapping, fetcher_names

PATIENCE_S = 10.0
_REST_AFTER = 0.5


@dataclass
class _Move:
    """One change of ownership.  `since_s` is None until the new fetch actors are there."""

    number: int
    after: VnodeMapping
    asked: int
    since_s: float | None = None
    rests: bool = False
    is_due: bool = False
    epoch: int | None = None


class Rescaling:
    """Takes the fetch actors of an attempt from one number to another, one change after the other.

    Names are never used twice: what is heard late of one who has left is about nobody else.

    Args:
        num_fetchers: how many there are at the start.
        patience_s: for so long a barrier waits for what is being read, and half of it before open files have to rest.
        ordered: see `VnodeMapping`.

    `asked` counts what was asked for, `over` what of that is done: whoever asked later has the last word.
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
        """How many own vnodes from the last barrier on."""
        return len(self.mapping.owners)

    @property
    def wanted(self) -> int:
        """How many were asked for last."""
        return self._wanted

    @property
    def is_under_way(self) -> bool:
        """Whether vnodes are moving, or about to."""
        return self._move is not None

    def ask(self, num_fetchers: int) -> list[Instruction]:
        """There are to be so many."""
        self._wanted = num_fetchers
        self.asked += 1
        return self._begin()

    def on_connected(self, now_s: float) -> list[Instruction]:
        """The new fetch actors are there."""
        assert self._move is not None, "they were asked for"
        self._move.since_s = now_s
        return [self._prepare(self._move)]

    def go_on(self, now_s: float, fetchers: Iterable[FetchProgress]) -> list[Instruction]:
        """Looks how far the owners are; `is_due` tells whether the barrier is."""
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
        """Who shall own which vnodes from the next barrier on, if it is time."""
        move = self._move
        return move.after if move is not None and move.is_due and move.epoch is None else None

    def wake_s(self) -> float | None:
        """When `go_on` should be called at the latest."""
        move = self._move
        if move is None or move.since_s is None or move.is_due:
            return None
        return move.since_s + self._patience_s * (1.0 if move.rests else _REST_AFTER)

    def on_barrier(self, epoch: int) -> None:
        """The barrier that ends an epoch moves the vnodes."""
        assert self._move is not None and self._move.is_due, "the barrier was due"
        self._move.epoch = epoch

    def on_epoch_over(self, epoch: int) -> list[Instruction]:
        """An epoch was committed, or had nothing to commit."""
        move = self._move
        if move is None or move.epoch != epoch:
            return []
        before, self.mapping, self._move = self.mapping, move.after, None
        self.over = move.asked
        leaving = tuple(name for name in before.owners if name not in self.mapping.owners)
        return [*([EndFetchers(leaving)] if leaving else []), *self._begin()]

    def _begin(self) -> list[Instruction]:
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
