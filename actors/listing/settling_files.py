"""Local files that one listing has shown: a process may still be writing them."""

from __future__ import annotations


class SettlingFiles:
    """Decides when a local file is taken: when two listings in a row show the same version of it."""

    def __init__(self) -> None:
        self._before: dict[str, bytes] = {}
        self._now: dict[str, bytes] = {}
        self._waited_for: set[str] = set()
        self._unsettled: set[str] = set()

    @property
    def unsettled(self) -> int:
        """Number of files of the last listing that are waited for and that no page has shown a second time yet."""
        return len(self._unsettled)

    def __bool__(self) -> bool:
        """Whether the last listing had settling files."""
        return bool(self._before)

    def is_settling(self, path: str, version: bytes, *, is_new: bool) -> bool:
        """Whether a file on a page must be shown by the next listing as well.

        Args:
            path: the path of the file.
            version: its version on the page.
            is_new: whether no version of it was handed on.
        """
        if self._before.get(path) == version:
            self._unsettled.discard(path)
            return False
        self._now[path] = version
        if is_new or path not in self._before:
            # A file that was read before and changes in every listing is waited for once, not for ever.
            self._waited_for.add(path)
        return True

    def end_listing(self) -> tuple[set[str], set[str]]:
        """A listing has ended.

        Returns:
            The paths of all settling files, and of those that are waited for once more.
        """
        self._before, self._now = self._now, {}
        waited_for, self._waited_for = self._waited_for, set()
        self._unsettled = set(waited_for)
        return set(self._before), waited_for
