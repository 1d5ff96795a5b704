"""Pace of the log-ins from one network: after a wrong password the next attempts from there wait for their turn."""

from __future__ import annotations

_BETWEEN_S = 0.1
_LONGEST_WAIT_S = 5.0


class LogInPace:
    """Assigns each attempt to prove a password the time at which it is answered.

    A network without a recent wrong password does not wait.  After one, the network gets ten verdicts a second, by any
    number of connections.  No attempt waits for more than five seconds, so that a client behind the same address as a
    misconfigured one can still log in.
    """

    def __init__(self) -> None:
        self._free_at: dict[str, float] = {}

    def wait_s(self, network: str, now_s: float) -> float:
        """Seconds until this attempt may be answered."""
        free_at = self._free_at.get(network, 0.0)
        if free_at <= now_s:
            return 0.0
        self._delay(network, free_at, now_s)
        return free_at - now_s

    def refused(self, network: str, now_s: float) -> None:
        """Records a wrong password."""
        # Networks that need not wait are dropped: attackers with many addresses must not fill the memory.
        self._free_at = {name: free_at for name, free_at in self._free_at.items() if free_at > now_s}
        self._delay(network, max(self._free_at.get(network, 0.0), now_s), now_s)

    def _delay(self, network: str, free_at: float, now_s: float) -> None:
        self._free_at[network] = min(free_at + _BETWEEN_S, now_s + _LONGEST_WAIT_S)
