"""Checks of writes and deletions in places that a link leads elsewhere."""

from __future__ import annotations

from slackwater.places.declared_place import PlaceKind
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.links import Links

# As long as the work on files relies on its last look at the places, and some time for the look itself.
_LOOKED_FOR_S = 2.5


class PlaceChecker:
    """Checks that nothing is written to a place, or deleted there, while it leads elsewhere or overlaps another place.

    Args:
        links: the present paths of the places.
    """

    def __init__(self, links: Links) -> None:
        self._links = links

    def on_table(self, view: str, what: str) -> None:
        """A run begins to write to a table, right after its look at the places."""
        if self._links.wrong_for_s(PlaceKind.TABLE, view) is not None:
            raise PromiseBroken("places", f"{what} of the table of {view}, whose place overlaps another place")

    def on_file(self, source: str, path: str, *, is_moved: bool) -> None:
        """A run sends the request to copy or delete a file of a source."""
        for kind in (PlaceKind.SOURCE, *([PlaceKind.ARCHIVE] if is_moved else [])):
            wrong_s = self._links.wrong_for_s(kind, source)
            if wrong_s is not None and wrong_s > _LOOKED_FOR_S:
                raise PromiseBroken("places", f"{path} goes, and the {kind.value} has overlapped for {wrong_s:.1f} s")
