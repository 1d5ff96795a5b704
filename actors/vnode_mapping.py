"""Which fetch actor owns which vnodes."""

from __future__ import annotations

from state.vnode import VNODES, vnode_of


class VnodeMapping:
    """An even split of the vnodes.

    Args:
        owners: number of fetch actors, 1 to 256.
    """

    def __init__(self, owners: int) -> None:
        self._owner = [vnode * owners // VNODES for vnode in range(VNODES)]

    def owner_of(self, path: str) -> int:
        """The index of the fetch actor that reads this path."""
        return self._owner[vnode_of(path)]

    def vnodes_of(self, owner: int) -> frozenset[int]:
        """The vnodes of one fetch actor."""
        return frozenset(vnode for vnode, each in enumerate(self._owner) if each == owner)
