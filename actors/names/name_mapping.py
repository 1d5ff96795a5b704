"""The mapping of names to the name actors that keep them, by the vnode of their fingerprint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from actors.names.questions import Rows
from actors.names.seen_index import Words
from actors.names.seen_piece import SeenPiece
from actors.protocol.vnode_mapping import VnodeMapping

_FINGERPRINT_BYTES = 16
_Vnodes = npt.NDArray[np.uint8]


class NameMapping:
    """An even split of the vnodes; the vnode of a name is the first byte of its fingerprint.

    Fingerprints are spread evenly, and the table `seen` is sorted by them: the names of an owner are one range of it.

    Args:
        owners: 1 to 256 names of name actors.
    """

    def __init__(self, owners: Sequence[str]) -> None:
        self.owners = tuple(owners)
        self._owner = VnodeMapping.even(self.owners).owner
        place = {name: at for at, name in enumerate(self.owners)}
        self._places = np.array([place[name] for name in self._owner])

    def owner_of(self, key: bytes) -> str:
        """The name actor that keeps the name with this fingerprint."""
        return self._owner[key[0]]

    def shares(self, keys: Sequence[bytes]) -> dict[str, Rows]:
        """Owner → the positions of its keys, of the owners that have any."""
        vnodes = np.frombuffer(b"".join(keys), np.uint8)[::_FINGERPRINT_BYTES]
        return self._shares(vnodes)

    def split(self, piece: SeenPiece) -> dict[str, SeenPiece]:
        """Owner → its part of a piece, in the order of the piece."""
        return {owner: piece.part(rows) for owner, rows in self._shares(_vnodes(piece.keys)).items()}

    def _shares(self, vnodes: _Vnodes) -> dict[str, Rows]:
        places = self._places[vnodes]
        shares = {name: np.flatnonzero(places == at) for at, name in enumerate(self.owners)}
        return {name: rows for name, rows in shares.items() if len(rows)}


def _vnodes(keys: Words) -> _Vnodes:
    vnodes: _Vnodes = (keys[:, 0] >> np.uint64(56)).astype(np.uint8)
    return vnodes
