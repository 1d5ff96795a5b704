"""What a run would do with one source."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from slackwater.planning.dry_run.prices import Requests

_NOTHING = Requests()


@dataclass(frozen=True)
class Files:
    """How many files, and how many bytes they have in the store."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Files) -> Files:
        return Files(self.files + other.files, self.bytes + other.bytes)


@dataclass(frozen=True, kw_only=True)
class SourcePlan:
    """One source.  Every listed file is either known, left out, waiting, new, or changed.

    Args:
        name: of the source.
        url: where it is listed.
        pattern: which of the names count.
        listed: what the listing has shown, of names that count.
        known: of these, what is not read: it was, or it has changed since and `on_change` ignores that.
        left_out: what was written before `modified_after` or, with `include_existing=False`, before the source.
        waiting: what the root's queue has already.
        new: what the root has never seen.
        changed: what has changed since it was read, and is read again.
        first_pass: requests of one listing, and about those of reading what is to be read, with all columns.
        first_pass_dollars: what these cost; 0 where requests cost nothing, as in a directory.
        period_s: seconds from one listing to the next.
        idle_day: requests of a day on which nothing comes.
        idle_day_dollars: what these cost.
        asked: what the dry run itself has asked for.
        schema: as the root keeps it, as it is declared, or as the first files show it; None if nothing does.
        notes: what is worth knowing, a line each.
        refused: why a run would not start, or would end, because of this source; None if it would not.
    """

    name: str
    url: str
    pattern: str
    listed: Files = Files()
    known: Files = Files()
    left_out: Files = Files()
    waiting: Files = Files()
    new: Files = Files()
    changed: Files = Files()
    first_pass: Requests = _NOTHING
    first_pass_dollars: float = 0.0
    period_s: float = 0.0
    idle_day: Requests = _NOTHING
    idle_day_dollars: float = 0.0
    asked: Requests = _NOTHING
    schema: pa.Schema | None = None
    notes: tuple[str, ...] = ()
    refused: str | None = None

    @property
    def to_read(self) -> Files:
        """What a run would read."""
        return self.waiting + self.new + self.changed
