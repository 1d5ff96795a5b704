"""A story and the settings of its pipeline."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from actors.files import ReadingOrder
from actors.sources.source import OnChange
from slackwater.plugins.after_commit.actions import Delete, Move
from spark_bridge.changes.joined_positions import JoinKind
from state.errors import SettingsError
from tests.simulation.model_views.model_view import TimeFilter
from tests.simulation.stories.features import VALID_WITH_OTHERS

if TYPE_CHECKING:
    from tests.simulation.stories.steps import Step


@dataclass(frozen=True, repr=False)
class Scenario:
    """What happens to which pipeline.

    Every pipeline has two views: all rows of all sources, and the groups of the first source.

    Args:
        story: the steps, in their order.
        sources: their names.
        fetchers: the number of fetch actors.
        schema_known: whether the schema is declared, or taken from the first files.
        must_settle: whether the bucket is a directory, whose files are taken only in the second listing.
        listing_s: seconds between two listings.
        page_size: objects in a page of a listing.
        piece_rows: rows in a piece of a file, and in a block, at most.
        epoch_rows: an epoch ends early with so many.
        credit_rows: rows between a fetch actor and Spark, at most.
        concurrency: reads at a time.
        files_waiting: the list budget.
        keep_epochs: the number of readable epochs; None for all, and then there is no upkeep at all.
        on_change: what the sources do with files that have changed: `ignore`, `append`, `replace`, or `fail` until the
            user accepts it.
        max_removed_share, max_removed_files: how many files may go at once, if the sources replace.
        adds_columns: whether the files have columns that their sources get when they are found.
        clock_stands: whether the wall clock stands still, as a coarse one does for a while.
        materialize: whether the rows of the sources are kept, too; they are if changed files are replaced.
        backfill: whether every process but the first declares a further view, of all rows of all sources.
        derived_view: whether there is a further view over the view of groups.
        nested_view: whether there is a further view that groups within, so that it has an internal view.
        join: the kind of the join of a further view, of the first source with the last one; None without that view.
        full_view: whether there is a further view of all rows that is recomputed as a whole; only with stored rows.
        expiring: the kind of a further join of these two, whose rows expire by the watermarks; None without that view.
        time_filter: the filter by the time of a further view of the first source; None without that view.
        closing: whether there is a further view of the first source that shows windows when they close.
        after: what is done to the files of every source after the commit; None for nothing.
        publishes: the views that tables follow, `rows` or `groups` or both.
        bucket_clock: whether the bucket gives objects the time of a clock that is always right.
        gate: whether views expect something of their rows, and two of them hold results back.
        lateness_us: the lateness of the event times of every source; None for sources without an event time.
        idle_s: seconds without rows after which the watermark of a source follows the clock; None for never.
        order: in which the files of every source are read; None for none.
        notifications: whether queues of events tell of files, too.
        loses_events: whether some events never come.
        name_actors: the number of name actors of each source; with 1 its list actor keeps the names.
        patience_s: seconds for which a rescaling waits for what is being read.
        stages_deltas: whether every delta is staged, as large ones are.
        on_lance: whether production's store on Lance gets each commit, too, and is compared.
        is_contended: whether others act between any two requests for the ownership of the root, which can fail.
        slow: the name of an actor that is slower than everybody else; empty for none.

    Raises:
        SettingsError: features of the story conflict (`features.py`).
    """

    story: tuple[Step, ...]
    sources: tuple[str, ...] = ("s",)
    fetchers: int = 2
    schema_known: bool = True
    must_settle: bool = False
    listing_s: float = 10.0
    page_size: int = 2
    piece_rows: int = 3
    epoch_rows: int = 50
    credit_rows: int = 20
    concurrency: int = 4
    files_waiting: int = 8
    keep_epochs: int | None = None
    on_change: OnChange = "ignore"
    max_removed_share: float = 0.2
    max_removed_files: int = 100
    adds_columns: bool = False
    clock_stands: bool = False
    materialize: bool = False
    backfill: bool = False
    full_view: bool = False
    derived_view: bool = False
    nested_view: bool = False
    join: JoinKind | None = None
    expiring: JoinKind | None = None
    time_filter: TimeFilter | None = None
    closing: bool = False
    after: Delete | Move | None = None
    publishes: tuple[str, ...] = ()
    bucket_clock: bool = False
    gate: bool = False
    lateness_us: int | None = None
    idle_s: float | None = None
    order: ReadingOrder | None = None
    notifications: bool = False
    loses_events: bool = False
    name_actors: int = 1
    patience_s: float = 10.0
    stages_deltas: bool = False
    on_lance: bool = False
    is_contended: bool = False
    slow: str = ""

    def __post_init__(self) -> None:
        for feature in VALID_WITH_OTHERS:
            for conflict in feature.conflicts(self):
                raise SettingsError(f"the story is not valid: {conflict}")

    @property
    def stores_rows(self) -> bool:
        return self.materialize or self.on_change == "replace"

    @property
    def pauses_removals(self) -> bool:
        """True if every removal of rows pauses until the user allows it."""
        return self.on_change == "replace" and self.max_removed_share == self.max_removed_files == 0

    def __repr__(self) -> str:
        others = [
            f", {each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if each.name != "story" and getattr(self, each.name) != each.default
        ]
        return f"Scenario(({''.join(f'{step!r}, ' for step in self.story).rstrip()}){''.join(others)})"
