"""Moves of vnodes between fetch actors: getting ready, handing files over, taking files over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import TypeVar

from actors.fetching.file_progress import FileProgress
from actors.fetching.file_versions import FileVersions
from actors.fetching.handover import Handover
from actors.fetching.instructions import HandOver
from actors.fetching.read_scheduler import ReadScheduler
from actors.fetching.replacements import Replacements
from actors.fetching.schema_reports import SchemaProposals
from actors.files import PathKey
from actors.protocol.barrier import Update

_Item = TypeVar("_Item")


class VnodeMoves:
    """The moves of one fetch actor's vnodes.

    Attributes:
        moved: files that came from other fetch actors, less those that went to them.

    Args:
        actor: the name of this fetch actor.
        files, reads, replacements, proposals: the state that moves with the vnodes.
    """

    def __init__(
        self,
        *,
        actor: str,
        files: FileVersions,
        reads: ReadScheduler,
        replacements: Replacements,
        proposals: SchemaProposals,
    ) -> None:
        self._actor, self._files, self._reads = actor, files, reads
        self._replacements, self._proposals = replacements, proposals
        self._announced = self._ready = 0
        self.moved = 0

    def prepare(self, number: int, vnodes: Set[int], *, rest: bool) -> None:
        """Opens no further file of vnodes that are about to move.

        Args:
            vnodes: the vnodes that go to others.
            rest: whether open files stop at the end of their piece, too.
        """
        self._announced = number
        self._reads.move(vnodes, rest=rest)

    def ready(self) -> int:
        """The last rescaling for which no file has to be read again by its next owner."""
        if self._ready < self._announced and self._reads.may_move:
            self._ready = self._announced
        return self._ready

    def leaving(self, update: Update) -> list[FileProgress]:
        """The begun files whose vnodes go to others."""
        queue, receivers = self._files.queue, update.before.moves_from(self._actor, update.after)
        return [each for each in queue.begun.values() if queue.vnode_of(each.path_key) in receivers]

    def hand_over(self, update: Update, epoch: int) -> list[HandOver]:
        """Removes the state of the vnodes that go to others, just after a seal.

        Args:
            update: owners before and after.
            epoch: the epoch that begins.

        Returns:
            One handover for each next owner.
        """
        versions, queue = self._files, self._files.queue
        assert versions.state.is_sealed, "the next owner takes files as they are stored"
        receivers = update.before.moves_from(self._actor, update.after)
        files = self._grouped(queue, receivers, lambda each: each.path_key)
        successors = self._grouped(versions.successors.values(), receivers, lambda each: each.path_key)
        held = self._grouped(versions.held, receivers, lambda path: path)
        for each in (each for group in files.values() for each in group):
            has_begun = each.key in queue.begun
            queue.leave(each)
            if has_begun:
                each.settle(is_interrupted=each.key in self._reads.active)
            self.moved -= 1
        queue.pending.retain(lambda each: each.key in queue)
        for path in [each.path_key for group in successors.values() for each in group]:
            del versions.successors[path]
        versions.held.difference_update(*held.values())
        samples = dict(self._proposals.samples)
        vnodes = {
            name: [each for each in receivers if receivers[each] == name] for name in sorted({*receivers.values()})
        }
        return [
            HandOver(
                name,
                Handover(
                    giver=self._actor,
                    epoch=epoch,
                    files=tuple(files.get(name, ())),
                    successors=tuple(successors.get(name, ())),
                    without_rows=versions.without_rows.give(given),
                    changed=versions.changed.give(given),
                    held=frozenset(held.get(name, ())),
                    samples=samples,
                ),
            )
            for name, given in vnodes.items()
        ]

    def take_over(self, handover: Handover) -> None:
        """Continues the files of another fetch actor."""
        versions = self._files
        for each in handover.files:
            versions.queue.take_over(each)
            if each.ending is not None:
                self._replacements.take_over(each)
        self.moved += len(handover.files)
        versions.successors |= {each.path_key: each for each in handover.successors}
        versions.without_rows.take(handover.without_rows)
        versions.changed.take(handover.changed)
        versions.held |= handover.held
        self._proposals.learn(handover.samples)

    def _grouped(
        self, items: Iterable[_Item], receivers: Mapping[int, str], path_of: Callable[[_Item], PathKey]
    ) -> dict[str, list[_Item]]:
        """Next owner → the items whose vnode it gets."""
        groups: dict[str, list[_Item]] = {}
        for item in items:
            receiver = receivers.get(self._files.queue.vnode_of(path_of(item)))
            if receiver is not None:
                groups.setdefault(receiver, []).append(item)
        return groups
