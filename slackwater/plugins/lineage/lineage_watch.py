"""The watch of a run: its events, as they come, and those of its end."""

from __future__ import annotations

from functools import partial

from slackwater.extensions.companion import Companion, RunContext
from slackwater.plugins.lineage.emitter import Emitter
from slackwater.plugins.lineage.open_lineage import OpenLineage
from slackwater.plugins.lineage.run_lineage import RunLineage
from slackwater.reading.store import Store
from slackwater.status.run_status import RunStatus


class LineageWatch(Companion):
    """Sends the events of one run; called by one thread at a time.

    Args:
        lineage: makes the events of the run.
    """

    name = "lineage"

    def __init__(self, lineage: RunLineage, emitter: Emitter) -> None:
        self._lineage, self._emitter = lineage, emitter

    def look(self, status: RunStatus) -> bool:
        """Sends what is new; True."""
        self._emitter.put(self._lineage.look(status))
        self._emitter.send()
        return True

    def end(self, status: RunStatus, failure: Exception | None) -> None:
        """Sends the last events, of the end of the run."""
        self._emitter.put(self._lineage.end(status, None if failure is None else str(failure)))
        self._emitter.end()


def lineage_watch(target: OpenLineage, run: RunContext) -> LineageWatch:
    """The watch of a run, for the receiver of its events."""
    open_store = partial(Store, run.root, run.clock)
    events = RunLineage(target, run.pipeline, run.run_id, open_store, run.clock)
    return LineageWatch(events, Emitter(target, run.clock))
