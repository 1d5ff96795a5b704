"""The mapping of vnodes to the actors that own them: fetch actors, by path, and name actors, by fingerprint."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from state.vnode import VNODES, vnode_of


@dataclass(frozen=True)
class VnodeMapping:
    """An even split of the vnodes: no owner has more than one vnode more than another.

    Args:
        owner: vnode → name of its owner.
        ordered: the sources with an order: one owner reads all their files.
    """

    owner: tuple[str, ...]
    ordered: frozenset[str] = frozenset()

    @classmethod
    def even(cls, owners: Sequence[str], ordered: Iterable[str] = ()) -> VnodeMapping:
        """The first split.

        Args:
            owners: 1 to 256 names.
            ordered: see `VnodeMapping`.
        """
        return cls(tuple(owners[vnode * len(owners) // VNODES] for vnode in range(VNODES)), frozenset(ordered))

    @property
    def owners(self) -> tuple[str, ...]:
        """Every owner, in the order of its first vnode."""
        return tuple(dict.fromkeys(self.owner))

    def owner_of(self, source: str, path: str) -> str:
        """The fetch actor that reads this path of a source."""
        return self.owner[vnode_of_file(source, path, self.ordered)]

    def vnodes_of(self, owner: str) -> frozenset[int]:
        """The vnodes of one fetch actor."""
        return frozenset(vnode for vnode, each in enumerate(self.owner) if each == owner)

    def rescaled(self, owners: Sequence[str]) -> VnodeMapping:
        """The even split among other owners that moves the fewest vnodes.

        Owners that stay keep as many as an even split allows; those with the most may have one more than the others.

        Args:
            owners: 1 to 256 names.
        """
        kept = {name: sorted(self.vnodes_of(name)) for name in owners}
        floor, larger = divmod(VNODES, len(owners))
        by_size = sorted(owners, key=lambda name: -len(kept[name]))
        quota = {name: floor + (place < larger) for place, name in enumerate(by_size)}
        after = {vnode: name for name in owners for vnode in kept[name][: quota[name]]}
        short = (name for name in owners for _ in range(quota[name] - len(kept[name])))
        after |= zip(sorted(set(range(VNODES)) - after.keys()), short, strict=True)
        return replace(self, owner=tuple(after[vnode] for vnode in range(VNODES)))

    def moves_from(self, owner: str, after: VnodeMapping) -> dict[int, str]:
        """Vnode → its next owner, for the vnodes that one owner loses."""
        return {vnode: after.owner[vnode] for vnode in self.vnodes_of(owner) if after.owner[vnode] != owner}

    def givers_to(self, owner: str, after: VnodeMapping) -> frozenset[str]:
        return frozenset(self.owner[vnode] for vnode in after.vnodes_of(owner)) - {owner}


def vnode_of_file(source: str, path: str, orders: Container[str]) -> int:
    """The vnode whose owner reads a file: that of its path, or that of its source if this has an order."""
    return vnode_of(source if source in orders else path)


def fetcher_names(first: int, count: int) -> tuple[str, ...]:
    """Names of fetch actors, numbered from `first` on."""
    return tuple(f"fetch-{number}" for number in range(first, first + count))
