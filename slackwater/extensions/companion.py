"""Companions of a run: alerts, lineage, the work on files after the commit; and the options that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

from slackwater.extensions.by_class import by_class
from slackwater.extensions.run_views import RunViews
from slackwater.places.declared_place import DeclaredPlace
from slackwater.status.run_status import AfterCommitStatus, RunStatus
from state.clock import Clock
from state.location import Location


@dataclass(frozen=True)
class RunContext:
    """A run, as its companions get it when it starts.

    Args:
        pipeline: the name of the pipeline.
        root: the root, which this run owns.
        run_id: the identifier of the run.
        places: every place that the run reads or writes, as far as the declaration names it.
        views: the declared views and published tables; they change while the run lasts.
        confirm_owner: reads the owner of the root; raises FencedError if it is another run.
    """

    pipeline: str
    root: Location
    run_id: str
    clock: Clock
    places: Sequence[DeclaredPlace]
    views: RunViews
    confirm_owner: Callable[[], None]


class Companion(Protocol):
    """A part of a run in addition to its views.  Called by one thread at a time; an error ends it, and not the run.

    Attributes:
        name: of the companion, in logs.
        ends_first: whether `end` is called before Spark and the publications end; by default after them.
    """

    name: ClassVar[str]
    ends_first: ClassVar[bool] = False

    @property
    def statuses(self) -> tuple[AfterCommitStatus, ...]:
        """The part of the status of the run that it reports, a moment ago.  Called by any thread."""
        return ()

    def look(self, status: RunStatus) -> bool:
        """Gets the status of the run, about once a second.  Returns whether it continues."""
        ...

    def end(self, status: RunStatus, failure: Exception | None) -> None:
        """Gets the last status, and the error that has ended the run.  Not called if `look` has returned False."""
        ...


class RunOption(Protocol):
    """An option of a pipeline that adds a companion to its runs."""

    @classmethod
    def companion(cls, options: Sequence[Self], run: RunContext) -> Companion:
        """Makes the companion of all options of this class.

        Raises:
            StorageError: the root cannot be read.
        """
        ...


class NamedOption(RunOption, Protocol):
    """An option whose name is unique in its pipeline, such as an alert."""

    @property
    def name(self) -> str:
        """The name in notices."""
        ...


def companions_of(options: Iterable[RunOption], run: RunContext) -> list[Companion]:
    """The companions of a run, one for each class of options.

    Raises:
        StorageError: the root cannot be read.
    """
    return [kind.companion(of_kind, run) for kind, of_kind in by_class(options).items()]
