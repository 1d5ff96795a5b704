"""Addresses of rows, as Lance makes them: the number of a fragment, then the position of the row in it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

ADDRESS = "_rowaddr"
"""Lance's column of the addresses."""

FRAGMENT_BITS = 32
"""Number of low bits for the position in a fragment; the number of the fragment is above them."""

Addresses = npt.NDArray[np.uint64]


def fragments_of(addresses: Addresses) -> npt.NDArray[np.int64]:
    """The numbers of the fragments of rows."""
    return (addresses >> np.uint64(FRAGMENT_BITS)).astype(np.int64)


def at_addresses(addresses: Iterable[int]) -> str:
    """The condition of the rows at these addresses, at least one, in Lance's SQL."""
    return f"{ADDRESS} IN ({','.join(map(str, addresses))})"
