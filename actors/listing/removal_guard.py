"""Guard of removals: pauses them when too many files of a source would leave the views at once."""

from __future__ import annotations

from collections import deque

_AT_ONCE_S = 600.0


class RemovalGuard:
    """Decides whether the missing files of a source may leave the views.

    Removals pause when more than a share of the files, and more than a number of files, would go at once, or when no
    file would be left.  "At once" is within ten minutes: files that listings and events tell one by one count together.
    The pause holds for all removals of the source, and for nothing else.  It ends with a listing that lacks few enough
    files, or with the next listing after `allow`.

    Args:
        max_share: the share of the files, from 0 to 1; 1 never pauses.

    Attributes:
        paused: the number of files whose removal is paused; 0 while removals go on.
        known: the number of files of the source at the last decision, the missing ones included.
    """

    def __init__(self, max_share: float = 1.0, max_files: int = 0) -> None:
        self._max_share, self._max_files = max_share, max_files
        # Time of the monotonic clock, and the number of files that were removed then.
        self._removed: deque[tuple[float, int]] = deque()
        self._allowed = 0
        self.paused = self.known = 0

    def decide(self, missing: int, known: int, now_s: float) -> None:
        """Decides again.

        Args:
            missing: the number of files that are missing and not removed; more than `known` count as `known`.
            known: the number of files of the source, with the missing ones.
            now_s: time of the monotonic clock.
        """
        while self._removed and self._removed[0][0] <= now_s - _AT_ONCE_S:
            self._removed.popleft()
        missing = min(missing, known)
        self._allowed = min(self._allowed, missing)
        removed = sum(count for _, count in self._removed)
        at_once = missing - self._allowed + removed
        is_many = at_once > self._max_files or missing >= known
        is_paused = missing > self._allowed and is_many and at_once > self._max_share * (known + removed)
        self.paused, self.known = missing if is_paused else 0, known

    def go_on(self, missing: int) -> None:
        """No file may leave now, so nothing is paused; `missing` files may have to leave later."""
        self._allowed, self.paused = min(self._allowed, missing), 0

    def allow(self) -> None:
        """Lets as many files go as are paused now."""
        self._allowed = self.paused

    def on_removed(self, count: int, now_s: float) -> None:
        """Files were removed; those that were allowed do not count."""
        allowed = min(count, self._allowed)
        self._allowed -= allowed
        if count > allowed:
            self._removed.append((now_s, count - allowed))
