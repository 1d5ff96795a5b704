"""Slots of the open connections: their number is limited, before and after the log-in."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

SURPLUS = 16
"""Connections beyond the limit that may send a first message: to cancel a statement, or to be refused in words."""
_IPV6_NETWORK_BITS = 64


@dataclass(eq=False)
class Slot:
    """One open connection.

    Args:
        network: the client's network, see `network_of`.
        evict: ends the connection; called at most once, and never after the log-in.
    """

    network: str
    evict: Callable[[], object]


class ConnectionSlots:
    """Counts connections from their acceptance to their end.

    A connection that finds all slots taken gets the slot of one that has not logged in yet: the oldest one of the
    network with the most of them.  Clients that connect and send nothing therefore never lock others out.

    Args:
        limit: the largest number of connections.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # In the order of their acceptance.
        self._pending: dict[Slot, None] = {}
        self._surplus: dict[Slot, None] = {}
        self._sessions: set[Slot] = set()

    @property
    def count(self) -> int:
        """All connections, with those beyond the limit."""
        return len(self._pending) + len(self._surplus) + len(self._sessions)

    def take(self, slot: Slot) -> None:
        """Counts a connection from now on; another connection may be evicted for it."""
        if self._has_room():
            self._pending[slot] = None
        elif self._pending:
            _evict(self._pending)
            self._pending[slot] = None
        else:
            if len(self._surplus) >= SURPLUS:
                _evict(self._surplus)
            self._surplus[slot] = None

    def may_log_in(self, slot: Slot) -> bool:
        """True if the limit allows this connection to log in."""
        if slot in self._surplus and self._has_room():
            del self._surplus[slot]
            self._pending[slot] = None
        return slot in self._pending

    def log_in(self, slot: Slot) -> None:
        """Marks a connection that `may_log_in` as a session, which is not evicted."""
        del self._pending[slot]
        self._sessions.add(slot)

    def evict_one(self) -> None:
        """Evicts a connection that has not logged in, if there is one."""
        pool = self._surplus or self._pending
        if pool:
            _evict(pool)

    def release(self, slot: Slot) -> None:
        """Counts the connection no longer."""
        self._pending.pop(slot, None)
        self._surplus.pop(slot, None)
        self._sessions.discard(slot)

    def _has_room(self) -> bool:
        return len(self._pending) + len(self._sessions) < self._limit


def network_of(address: str) -> str:
    """The network that one client can be expected to own: an IPv4 address, or the /64 of an IPv6 address."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    return address if ip.version == 4 else str(ipaddress.ip_network((int(ip), _IPV6_NETWORK_BITS), strict=False))


def _evict(pool: dict[Slot, None]) -> None:
    slot = _oldest_of_the_largest(pool)
    del pool[slot]
    slot.evict()


def _oldest_of_the_largest(pool: Iterable[Slot]) -> Slot:
    counts = Counter(slot.network for slot in pool)
    largest = max(counts.values())
    return next(slot for slot in pool if counts[slot.network] == largest)
