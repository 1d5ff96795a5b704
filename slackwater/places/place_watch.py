"""Watch of places during a run: links and mounts that change after the check at the start."""

from __future__ import annotations

from collections.abc import Iterable

from slackwater.places.declared_place import DeclaredPlace
from slackwater.places.overlap_table import require_apart
from state.errors import SettingsError


class PlaceWatch:
    """Checks before a write that no place has changed since the start.

    Args:
        own: the places that are written to.
        others: the other places of the run.
    """

    def __init__(self, own: Iterable[DeclaredPlace], others: Iterable[DeclaredPlace]) -> None:
        self._own, self._others = tuple(own), tuple(others)

    def check(self) -> None:
        """Compares the places again, as links and mounts are now.

        Raises:
            SettingsError: a place leads elsewhere than at the start, or overlaps another place.
        """
        require_apart([*self._others, *self._own], new=self._own)
        for place in self._own:
            now = place.resolved().address
            if place.address and now != place.address:
                raise SettingsError(
                    f"{place.words} ({place.location}) was at {place.address} when the run started, and is at {now}: "
                    "nothing was written; restore the link or the mount, or start the run again"
                )
