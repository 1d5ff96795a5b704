"""Local files that were seen once only: somebody may still be writing them."""

from __future__ import annotations


class SettlingFiles:
    """A local file is taken when two listings show the same version of it."""

    def __init__(self) -> None:
        self._before: dict[str, bytes] = {}
        self._now: dict[str, bytes] = {}
        self._waited_for: set[str] = set()
        self._unsettled: set[str] = set()

    @property
    def unsettled(self) -> int:
        """How many files of the last listing are waited for, and have not been shown once more yet."""
        return len(self._unsettled)

    def __bool__(self) -> bool:
        """Whether the last listing has found any."""
        return bool(self._before)

    def is_young(self, path: str, version: bytes, *, is_new: bool) -> bool:
        """Whether a file that a listing shows must be shown once more."""
        if self._before.get(path) == version:
            self._unsettled.discard(path)
            return False
        self._now[path] = version
        if is_new or path not in self._before:
            # What was read and changes in every listing is waited for once, not for ever.
            self._waited_for.add(path)
        return True

    def end_listing(self) -> tuple[set[str], set[str]]:
        """A listing has ended.

        Returns:
            The paths of all young files, and of those that are worth waiting for once more.
        """
        self._before, self._now = self._now, {}
        waited_for, self._waited_for = self._waited_for, set()
        self._unsettled = set(waited_for)
        return set(self._before), waited_for
