"""A story, and how the pipeline in it is set."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from actors.files import ReadingOrder
from actors.sources.source import OnChange

if TYPE_CHECKING:
    from slackwater.testing.simulation.stories.steps import Step


@dataclass(frozen=True, repr=False)
class Scenario:
    """What happens to which pipeline.

    Every pipeline has two views: all rows of all sources, and the groups of the first source.

    Args:
        story: what happens, in this order.
        sources: their names.
        fetchers: how many fetch actors.
        schema_known: whether the schema is declared, or taken from the first files.
        must_settle: whether the bucket is a directory, whose files are taken only in the second listing.
        listing_s: seconds between two listings.
        page_size: objects in a page of a listing.
        piece_rows: rows in a piece of a file, and in a block, at most.
        epoch_rows: an epoch ends early with so many.
        credit_rows: rows between a fetch actor and Spark, at most.
        concurrency: reads at a time.
        files_waiting: the list budget.
        keep_epochs: how many epochs stay readable; None for all, and then there is no upkeep at all.
        on_change: what the sources do with files that have changed: `ignore`, `append`, `replace`, or `fail` until the
            user accepts it.
        max_removed_share, max_removed_files: how many files may go at once, if the sources replace.
        adds_columns: whether the files have columns that their sources get when they are found.
        clock_stands: whether the wall clock stands still, as a coarse one does for a while.
        materialize: whether the rows of the sources are kept, too; they are if changed files are replaced.
        backfill: whether every process but the first declares a further view, of all rows of all sources.
        full_view: whether there is a further view of all rows that is recomputed as a whole; only with stored rows.
        order: in which the files of every source are read; None for none.
        notifications: whether queues of events tell of files, too.
        loses_events: whether some events never come.
        name_actors: how many name actors each source has; with 1 its list actor keeps the names.
        patience_s: seconds for which a rescaling waits for what is being read.
        stages_deltas: whether every delta is staged, as large ones are.
        on_lance: whether production's store on Lance gets each commit, too, and is compared.
        slow: the name of an actor that is slower than everybody else; empty for none.
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
    order: ReadingOrder | None = None
    notifications: bool = False
    loses_events: bool = False
    name_actors: int = 1
    patience_s: float = 10.0
    stages_deltas: bool = False
    on_lance: bool = False
    slow: str = ""

    @property
    def stores_rows(self) -> bool:
        return self.materialize or self.on_change == "replace"

    def __repr__(self) -> str:
        others = [
            f", {each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if each.name != "story" and getattr(self, each.name) != each.default
        ]
        return f"Scenario(({''.join(f'{step!r}, ' for step in self.story).rstrip()}){''.join(others)})"
