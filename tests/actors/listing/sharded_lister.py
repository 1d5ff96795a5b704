"""A list step whose names are in shards, with name steps that answer it in the order that chance picks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Any

from actors.listing.instructions import ListInstruction
from actors.listing.list_executor import ListExecutor
from actors.names.name_executor import NameExecutor
from actors.names.name_mapping import NameMapping
from actors.names.name_messages import NameAnswer
from actors.names.name_shards import NameShards, SendToNames
from actors.names.seen_index import SeenIndex
from actors.protocol.barrier import Barrier
from actors.protocol.instructions import Send


class ShardedLister(ListExecutor):
    """Its instructions are those to all others than its name steps, as of a step with the names in its own hands.

    Args:
        owners: the names of the name steps.
        seen: the names; each name step gets its share.
        random: picks the next answer.
    """

    def __init__(self, owners: tuple[str, ...], random: Random, *, seen: SeenIndex, **options: Any) -> None:
        super().__init__(seen=NameShards(owners), **options)
        self._random = random
        keys, versions = _names_of(seen)
        shares = {owner: list[int]() for owner in owners}
        if keys:
            shares |= {owner: rows.tolist() for owner, rows in NameMapping(owners).shares(keys).items()}
        self.name_steps = {
            owner: NameExecutor(
                actor=owner, index=SeenIndex([keys[row] for row in rows], [versions[row] for row in rows])
            )
            for owner, rows in shares.items()
        }

    def on_barrier(self, barrier: Barrier, now_s: float) -> list[ListInstruction]:
        return self._answered(super().on_barrier(barrier, now_s))

    def on_committed(self, epoch: int, now_s: float) -> list[ListInstruction]:
        return self._answered(super().on_committed(epoch, now_s))

    def on_mark(self, mark: int, now_s: float, *, at_once: bool = False) -> list[ListInstruction]:
        return self._answered(super().on_mark(mark, now_s, at_once=at_once))

    def on_schema(self, found: bool, now_s: float) -> list[ListInstruction]:
        return self._answered(super().on_schema(found, now_s))

    def on_time(self, now_s: float) -> list[ListInstruction]:
        return self._answered(super().on_time(now_s))

    def on_page(self, *arguments: Any) -> list[ListInstruction]:
        return self._answered(super().on_page(*arguments))

    def on_listing_end(self, now_s: float, now: datetime) -> list[ListInstruction]:
        return self._answered(super().on_listing_end(now_s, now))

    def on_deleted(self, *arguments: Any) -> list[ListInstruction]:
        return self._answered(super().on_deleted(*arguments))

    def on_messages(self, *arguments: Any) -> list[ListInstruction]:
        return self._answered(super().on_messages(*arguments))

    def on_looked(self, *arguments: Any) -> list[ListInstruction]:
        return self._answered(super().on_looked(*arguments))

    def _answered(self, instructions: list[ListInstruction]) -> list[ListInstruction]:
        """Lets the name steps answer until nothing is under way between them and the list step."""
        out: list[ListInstruction] = []
        under_way: list[tuple[str, NameAnswer]] = []
        while instructions or under_way:
            for each in instructions:
                if not isinstance(each, SendToNames):
                    out.append(each)
                    continue
                for step in self.name_steps[each.to].on_message(each.message):
                    if isinstance(step, Send) and isinstance(step.message, NameAnswer):
                        under_way.append((each.to, step.message))
            instructions = []
            if under_way:
                instructions = self.on_names(*under_way.pop(self._random.randrange(len(under_way))))
        return out


def sharded(shards: int) -> Callable[..., ShardedLister]:
    """Makes list steps with this number of shards."""
    owners = tuple(f"names-s-{number}" for number in range(shards))

    def make(**options: Any) -> ShardedLister:
        return ShardedLister(owners, Random(shards), **options)

    return make


def _names_of(seen: SeenIndex) -> tuple[list[bytes], list[bytes]]:
    """The names of an index that a test has just made."""
    content = b"".join(
        high.to_bytes(8, "big") + low.to_bytes(8, "big")
        for high, low in zip(seen._high.tolist(), seen._low.tolist(), strict=True)
    )
    keys = [content[start : start + 16] for start in range(0, len(content), 16)]
    return keys, [version.to_bytes(8, "big") for version in seen._versions.tolist()]
