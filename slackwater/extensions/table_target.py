"""Tables that follow views, as the core sees them: targets, publications, and the followers of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

from actors.protocol.run_state import RunState
from slackwater.extensions.by_class import by_class
from slackwater.extensions.run_views import PublishedView
from slackwater.places.declared_place import DeclaredPlace
from slackwater.status.run_status import PublicationStatus
from state.clock import Clock
from state.errors import SettingsError
from state.location import Location

LAST_EPOCH_S = 30.0
"""The seconds in which the last epoch of a run has to be published, before its follower is ended."""

CATCH_UP_S = 600.0
"""The same for a run that ends when it has caught up."""

_FORMS = 'sw.Delta("..."), sw.Iceberg("..."), sw.ParquetFiles("..."), or a list of them'


@dataclass(frozen=True)
class PublicationPlan:
    """The plan of the first publication of a run to a table.

    Args:
        view: the name of the view.
        table: the format and place of the table.
        epoch: the epoch of the table; None for a table without an epoch.
        beginning: the rows that the run would write first, in words.
        refused: why a run would be refused; None if it would not.
    """

    view: str
    table: str
    epoch: int | None = None
    beginning: str = ""
    refused: str | None = None


class Follower(Protocol):
    """Publishes the epochs of a run to tables, during the run.  Safe to use from many threads."""

    @property
    def all(self) -> Sequence[TablePublication]:
        """The views and their tables."""
        ...

    @property
    def statuses(self) -> tuple[PublicationStatus, ...]:
        """The state of each publication, a moment ago."""
        ...

    def add(self, publications: Sequence[Any]) -> None:
        """Publishes further views, or to further tables, from now on; they are of the class of the others."""
        ...

    def notify(self, state: RunState) -> None:
        """Takes a state of the run, and returns at once."""
        ...

    def begin_end(self) -> None:
        """Reports that no further epoch follows.  Returns at once."""
        ...

    def join(self, timeout_s: float = LAST_EPOCH_S) -> None:
        """Returns when the last epoch is published, its last try has failed, or after `timeout_s` seconds."""
        ...


class TablePublication(Protocol):
    """A view, and a table that follows it during a run."""

    @property
    def view(self) -> str:
        """The name of the view."""
        ...

    @property
    def table(self) -> str:
        """The format and place of the table."""
        ...

    def places(self) -> list[DeclaredPlace]:
        """The places of the table, as far as the declaration names them."""
        ...

    @classmethod
    def require_own_names(cls, publications: Sequence[Self]) -> None:
        """Checks that no two publications have one name in one catalog.

        Raises:
            SettingsError: two have.
        """
        ...

    @classmethod
    def check(cls, publications: Sequence[Self], root: Location, clock: Clock, places: Sequence[DeclaredPlace]) -> None:
        """Checks that each table can be reached and written, before anything of a run starts.

        Args:
            root: the root of the pipeline, which may not exist yet.
            places: the other places of the run.

        Raises:
            CommitRefusedError, SchemaError, SettingsError, StorageError, UsageError: as `publish`.
        """
        ...

    @classmethod
    def plan(cls, publications: Sequence[Self], root: Location, clock: Clock) -> tuple[PublicationPlan, ...]:
        """The plan of the first publication of a run to each table.  Nothing is written.

        Raises:
            StorageError: the root cannot be read.
        """
        ...

    @classmethod
    def follow(
        cls, publications: Sequence[Self], root: Location, clock: Clock, places: Sequence[DeclaredPlace]
    ) -> Follower:
        """Begins to publish the epochs of a run; arguments as `check`."""
        ...


@runtime_checkable
class TableTarget(Protocol):
    """A table of another format: `sw.Delta(...)`, `sw.Iceberg(...)` or `sw.ParquetFiles(...)`."""

    def publication_of(self, view: str, root: Location) -> TablePublication:
        """The publication of a view to this table.

        Args:
            view: the name of the view.
            root: the root of the pipeline, whose access tables on the same kind of store get.

        Raises:
            UsageError: the library of the format is not installed.
        """
        ...


Targets: TypeAlias = TableTarget | Sequence[TableTarget]


def declared(view: str, publish: Any, root: Location) -> tuple[TablePublication, ...]:
    """The publications in the option `publish` of a view.

    Args:
        view: the name of the view.
        publish: a target or several.
        root: the root of the pipeline.

    Raises:
        SettingsError: the option has another value.
        UsageError: the library of a format is not installed.
    """
    targets = publish if isinstance(publish, Collection) and not isinstance(publish, (str, bytes, dict)) else [publish]
    for target in targets:
        if not isinstance(target, TableTarget):
            raise SettingsError(f"view {view}: publish={target!r} is not a table: give {_FORMS}")
    return tuple(target.publication_of(view, root) for target in targets)


def places_of(publications: Iterable[TablePublication]) -> list[DeclaredPlace]:
    """The places of tables, as far as the declaration names them."""
    return [place for publication in publications for place in publication.places()]


def published_views(publications: Iterable[TablePublication]) -> tuple[PublishedView, ...]:
    """Publications as their status and `RunViews` name them."""
    return tuple(PublishedView(each.view, each.table) for each in publications)


def require_own_names(publications: Iterable[TablePublication]) -> None:
    """Checks that no two publications have one name in one catalog.

    Raises:
        SettingsError: two have.
    """
    for kind, of_kind in by_class(publications).items():
        kind.require_own_names(of_kind)


def check_publications(
    publications: Iterable[TablePublication], root: Location, clock: Clock, places: Sequence[DeclaredPlace]
) -> None:
    """Checks each table; arguments and errors as `TablePublication.check`."""
    for kind, of_kind in by_class(publications).items():
        kind.check(of_kind, root, clock, places)


def plan_publications(
    publications: Iterable[TablePublication], root: Location, clock: Clock
) -> tuple[PublicationPlan, ...]:
    """The plan of the first publication of a run to each table; errors as `TablePublication.plan`."""
    return tuple(plan for kind, of_kind in by_class(publications).items() for plan in kind.plan(of_kind, root, clock))
