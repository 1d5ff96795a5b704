"""Actions on the files of a source after the commit, as the core sees them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from actors.sources.source import SourceDefinition
from slackwater.extensions.companion import RunOption
from slackwater.extensions.planned_files import NO_FILES, Files
from slackwater.places.declared_place import DeclaredPlace
from spark_bridge.plans.view_definition import ViewDefinition
from state.clock import Clock
from state.errors import SettingsError
from state.location import Location
from state.store.store import StateStore

_FORMS = 'sw.Delete(keep_s=86_400), sw.Move("s3://archive/in"), sw.Tag({"slackwater": "done"})'


@dataclass(frozen=True)
class AfterPlan:
    """The plan of an action on the files of a source.

    Args:
        source: the name of the source.
        action: `delete`, `move to URL`, or `tag {...}`.
        due: the files on which it would act at once.
        first: the paths of the first of them, relative to the source.
        later: the other files whose rows are complete.
        waits_for: why these are not due; empty if only the stated time has to pass.
        tables: the views whose tables must have the epochs of these files first; a dry run does not ask the tables.
        keeps_rows: whether the root keeps the rows; otherwise a view that is declared later lacks the rows of
            deleted files.
    """

    source: str
    action: str
    due: Files = NO_FILES
    first: tuple[str, ...] = ()
    later: Files = NO_FILES
    waits_for: str = ""
    tables: tuple[str, ...] = ()
    keeps_rows: bool = True


class DeclaredFileAction(RunOption, Protocol):
    """A source with an action on its files."""

    @property
    def source(self) -> SourceDefinition:
        """The source."""
        ...

    def places(self) -> list[DeclaredPlace]:
        """The places that the action writes to."""
        ...

    def plan(
        self,
        state: StateStore | None,
        root: Location,
        views: Sequence[ViewDefinition],
        published: Collection[str],
        clock: Clock,
    ) -> AfterPlan:
        """The plan of a run that would start now.  Nothing is written.

        Args:
            state: a handle on the store; None for a root without a store.
            published: the views over the source that tables follow.
            clock: gives the time.

        Raises:
            StorageError: the root cannot be read.
        """
        ...


@runtime_checkable
class FileAction(Protocol):
    """An action on files whose rows are committed: `sw.Delete(...)`, `sw.Move(...)` or `sw.Tag(...)`."""

    @property
    def takes_away(self) -> bool:
        """True if the action deletes or moves files."""
        ...

    def for_source(self, source: SourceDefinition) -> DeclaredFileAction:
        """The action on the files of a source.

        Raises:
            SettingsError: the source does not allow it.
        """
        ...


def declared_action(source: SourceDefinition, after: Any) -> DeclaredFileAction:
    """The option `after` of a source.

    Raises:
        SettingsError: the option has another value, or the source does not allow it.
    """
    if not isinstance(after, FileAction):
        raise SettingsError(f"source {source.name}: after={after!r} is not an action: give {_FORMS}")
    return after.for_source(replace(source, deletes=after.takes_away))
