"""Declarations of actions on the files of sources, checked without a look at the world."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from actors.sources.source import SourceDefinition
from slackwater.extensions.companion import Companion, RunContext
from slackwater.extensions.entry import load
from slackwater.extensions.file_action import AfterPlan
from slackwater.places.declared_place import DeclaredPlace, PlaceKind
from slackwater.places.place_watch import PlaceWatch
from slackwater.plugins.after_commit.actions import After, Move, Tag
from spark_bridge.plans.view_definition import ViewDefinition
from state.clock import Clock
from state.errors import SettingsError
from state.location import Location
from state.store.store import StateStore


@dataclass(frozen=True)
class DeclaredAfter:
    """A source with an action on its files."""

    source: SourceDefinition
    action: After

    @property
    def takes_away(self) -> bool:
        """True if the action deletes or moves files."""
        return self.action.takes_away

    def places(self) -> list[DeclaredPlace]:
        """The place that files are moved to."""
        if not isinstance(self.action, Move):
            return []
        return [DeclaredPlace(PlaceKind.ARCHIVE, self.source.name, self.action.location)]

    def plan(
        self,
        state: StateStore | None,
        root: Location,
        views: Sequence[ViewDefinition],
        published: Collection[str],
        clock: Clock,
    ) -> AfterPlan:
        """The plan of a run that would start now; see `DeclaredFileAction`."""
        plan: AfterPlan = load("slackwater.plugins.after_commit.after_plan:plan_after")(
            self, state, root, views, published, clock
        )
        return plan

    @classmethod
    def companion(cls, options: Sequence[DeclaredAfter], run: RunContext) -> Companion:
        """The work on the files of these sources."""
        watches = {each.source.name: _watch(each.source.name, run.places) for each in options}
        work: Companion = load("slackwater.plugins.after_commit.file_work:FileWork")(
            run.root, options, run.confirm_owner, run.clock, run.views, places=watches
        )
        return work


def _watch(source: str, places: Sequence[DeclaredPlace]) -> PlaceWatch:
    """The watch of the place of a source and of the target of its moves."""
    own = [each for each in places if each.owner == source and each.kind in (PlaceKind.SOURCE, PlaceKind.ARCHIVE)]
    others = [each for each in places if each not in own]
    return PlaceWatch([each.checked() for each in own], others)


def declared(source: SourceDefinition, after: After) -> DeclaredAfter:
    """An action on the files of a source.

    Raises:
        SettingsError: the source does not allow it.
    """
    name, location = source.name, source.location
    if location.is_web:
        raise SettingsError(f"source {name}: files of a web server cannot be changed: leave the option after out")
    if isinstance(after, Tag):
        if location.scheme != "s3":
            raise SettingsError(f"source {name}: after=sw.Tag(...) is for s3://, and {location} has no tags")
    elif source.policy.removes:
        raise SettingsError(
            f'source {name}: with on_change="replace" the deletion of a file removes its rows from the views: '
            "leave the option after out, or declare the source with another on_change"
        )
    if isinstance(after, Move) and not after.storage_options and after.location.scheme == location.scheme:
        after = replace(after, storage_options=location.storage_options)
    return DeclaredAfter(source, after)
