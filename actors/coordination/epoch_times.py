"""The times of an epoch: the spans of its trace, and its youngest files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from state.tables.delta import Delta
from state.tables.epoch_trace import Phase, Span

WAITING = "waiting for its turn"
"""The step between two phases: the next phase is busy with the epoch before."""

_NOTICED_S = 0.001


@dataclass(frozen=True)
class EpochTimes:
    """Ends of the phases of one epoch, in seconds from the injection of its barrier.

    Args:
        opened_s: the opening of the epoch: 0 or below.
        aligned_s: every fetch actor had passed the barrier.
        materialized_s: every view was written.
        collected_s: actor → its report, without the materializer.
        complete_s: the turn of its commit had come.
        work_s: the materializer's time with the epoch, by its own clock.
        work: its spans in that time; `start_s` counts from its begin.
        planned_queries: queries that Spark planned in that time.
    """

    opened_s: float
    aligned_s: float
    materialized_s: float
    collected_s: Mapping[str, float]
    complete_s: float
    work_s: float = 0.0
    work: Sequence[Span] = ()
    planned_queries: int = 0

    def spans(self) -> list[Span]:
        """The phases up to the commit, and the parts of each."""
        # Reports of several actors may arrive in another order than they were sent.
        materialized_s = max(self.materialized_s, self.aligned_s)
        last_s = max([materialized_s, *self.collected_s.values()])
        began_s = max(self.aligned_s, materialized_s - self.work_s) if self.work_s else self.aligned_s
        return [
            Span("fetch", "", self.opened_s, -self.opened_s),
            Span("align", "", 0.0, self.aligned_s),
            *(Span("align", actor, 0.0, at_s) for actor, at_s in self.collected_s.items()),
            Span("spark", "", self.aligned_s, materialized_s - self.aligned_s),
            *_waiting("spark", self.aligned_s, began_s),
            *(replace(span, start_s=began_s + span.start_s) for span in self.work),
            Span("collect", "", materialized_s, max(last_s, self.complete_s) - materialized_s),
            *_waiting("collect", last_s, self.complete_s),
        ]


def _waiting(phase: Phase, start_s: float, end_s: float) -> list[Span]:
    return [Span(phase, WAITING, start_s, end_s - start_s)] if end_s - start_s >= _NOTICED_S else []


_LEDGER = "ledger"
_DONE = "done"


def youngest_files(delta: Delta) -> dict[str, datetime]:
    """Source → the time of its youngest file that an epoch has finished.

    Args:
        delta: the changes of the epoch.  Staged ones do not count: an epoch that large is not fresh.
    """
    part = delta.parts.get(_LEDGER)
    if part is None or not len(part):
        return {}
    if isinstance(part, pa.Table):
        rows = pa.Table.from_struct_array(part["row"].combine_chunks())
        done = rows.filter(pc.equal(rows["status"], _DONE))
        found = done.group_by("source").aggregate([("last_modified", "max")]).to_pylist()
        times = [(row["source"], row["last_modified_max"]) for row in found]
    else:
        changes = [change.fields for change in part.values() if change.fields.get("status") == _DONE]
        times = [(fields["source"], fields.get("last_modified")) for fields in changes if "source" in fields]
    youngest: dict[str, datetime] = {}
    for source, time in times:
        if time is not None:
            youngest[source] = max(time, youngest.get(source, time))
    return youngest
