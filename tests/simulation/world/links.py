"""Links and mounts that lead a place of a root elsewhere, and the places of a run as they are then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slackwater.places.declared_place import DeclaredPlace, PlaceKind
from slackwater.places.overlap_table import require_apart
from slackwater.places.place_watch import PlaceWatch
from state.errors import SettingsError
from state.location import Location
from state.places.place import Place

if TYPE_CHECKING:
    from tests.simulation.world.simulated_clock import SimulatedClock

_BASE = "s3://simulated/"


def table_url(view: str) -> str:
    """The URL of the table that follows a view."""
    return f"{_BASE}tables/{view}"


class Links:
    """Where the places of a root are now: each at its URL, unless a link leads elsewhere.

    Places are named by their paths: `root`, `sources/<source>`, `tables/<view>`, `archive/<source>`.

    Args:
        root: the location of the root.
        sources: the names of the sources.
        views: the published views.
        clock: of the world.
        moves: whether files of the sources are moved after the commit.
        changes_files: whether files of the sources are deleted or moved after the commit.
    """

    def __init__(
        self,
        root: Location,
        sources: Iterable[str],
        views: Iterable[str],
        clock: SimulatedClock,
        *,
        moves: bool,
        changes_files: bool,
    ) -> None:
        self._clock, self._changed_s = clock, 0.0
        self._targets: dict[str, str] = {}
        archives = sources if moves else ()
        self._places = [
            self._placed(PlaceKind.ROOT, "", root),
            *(self._placed(PlaceKind.SOURCE, each, _at(f"sources/{each}"), changes_files) for each in sources),
            *(self._placed(PlaceKind.ARCHIVE, each, _at(f"archive/{each}")) for each in archives),
            *(self._placed(PlaceKind.TABLE, each, Location(table_url(each))) for each in views),
        ]

    def lead(self, name: str, target: str) -> None:
        """From now on a link leads a place to another path."""
        assert any(each.location.url == _BASE + name for each in self._places), f"unknown place: {name}"
        self._targets[_BASE + name] = _BASE + target
        self._changed_s = self._clock.uptime()

    def restore(self) -> None:
        """The user removes every such link and mount."""
        if self._targets:
            self._targets.clear()
            self._changed_s = self._clock.uptime()

    def at(self, url: str) -> str:
        """Where a URL leads now."""
        return self._targets.get(url, url)

    def wrong_for_s(self, kind: PlaceKind, owner: str) -> float | None:
        """The seconds for which a place has led elsewhere, or another place has led into it; None if neither does."""
        [own] = [each for each in self._places if (each.kind, each.owner) == (kind, owner)]
        here = self.at(own.location.url)
        others = [self.at(each.location.url) for each in self._places if each is not own]
        overlaps = any(f"{here}/".startswith(f"{each}/") or f"{each}/".startswith(f"{here}/") for each in others)
        is_wrong = here != own.location.url or overlaps
        return self._clock.uptime() - self._changed_s if is_wrong else None

    def may_start(self) -> bool:
        """True if no two places overlap: else a start is refused."""
        try:
            require_apart(self._places)
        except SettingsError:
            return False
        return True

    def watch_of_table(self, view: str) -> PlaceWatch:
        """The watch of the table of a view, as a run makes it at its start."""
        return self._watch({PlaceKind.TABLE}, view)

    def watch_of_files(self, source: str) -> PlaceWatch:
        """The watch of a source and of the archive of its files, as a run makes it at its start."""
        return self._watch({PlaceKind.SOURCE, PlaceKind.ARCHIVE}, source)

    def _placed(self, kind: PlaceKind, owner: str, location: Location, changes_files: bool = False) -> SimulatedPlace:
        return SimulatedPlace(kind, owner, location, changes_files=changes_files, links=self)

    def _watch(self, kinds: set[PlaceKind], owner: str) -> PlaceWatch:
        own = [each for each in self._places if each.kind in kinds and each.owner == owner]
        return PlaceWatch([each.checked() for each in own], [each for each in self._places if each not in own])


@dataclass(frozen=True)
class SimulatedPlace(DeclaredPlace):
    """See `DeclaredPlace`: a place whose links are simulated."""

    links: Links | None = field(default=None, repr=False, compare=False)

    def resolved(self) -> Place:
        assert self.links is not None
        return Place.of(Location(self.links.at(self.location.url)))


def _at(path: str) -> Location:
    return Location(_BASE + path)
