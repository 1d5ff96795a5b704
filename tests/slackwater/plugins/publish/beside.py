"""Publications as a run has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from actors.protocol.run_state import CommittedEpoch, RunState
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publications import Publications
from slackwater.plugins.publish.targets import Target
from state.clock import SystemClock
from state.location import Location
from state.tables.records import EpochCounts, EpochSeconds


def state(*epochs: int) -> RunState:
    """Of a run that has committed these epochs, a second ago."""
    now = SystemClock().now()
    recent = tuple(CommittedEpoch(each, now, EpochCounts(), EpochSeconds()) for each in epochs)
    return RunState(1, "running", 1, max(epochs), recent=recent)


@contextmanager
def beside(root: str, *targets: Target) -> Iterator[Publications]:
    """The publications of the view `v`, as a run has them."""
    declared = [DeclaredPublication("v", target) for target in targets]
    publications = Publications(Location(root), declared, SystemClock())
    try:
        yield publications
    finally:
        publications.begin_end()
        publications.join()
