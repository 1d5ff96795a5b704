"""The plan of an attempt: its knowledge from the earlier attempts of the same run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from actors.files import FileKey
from actors.protocol.barrier import FlowCommand
from actors.settings import FetchSettings
from state.tables.records import EpochCounts


@dataclass(frozen=True)
class RunTotals:
    """The commits of a run: its last epoch, the number of epochs, and their counts."""

    epoch: int = 0
    epochs: int = 0
    counts: EpochCounts = field(default_factory=EpochCounts)


@dataclass(frozen=True)
class Poisoned:
    """A version that is given up.

    Args:
        reason: for people.
        rows: its committed rows, as the failed attempts reported; a file with more rows is not to blame.
    """

    reason: str
    rows: int


@dataclass(frozen=True)
class AttemptPlan:
    """The beginning of an attempt.

    Args:
        run: name of the run; the head carries it from the take-over on.
        number: 1 for the first attempt of a run.
        held_root: whether an earlier attempt of this run has won the head; if another run holds it now, this one is
            fenced.
        replaces_term: the head's term when the run began; None to take the root from any owner.  A higher term of
            another run fences this one.
        replaces: runs that this one replaces: their terms do not fence it, however late they come.
        so_far: commits of the earlier attempts.
        files_at_once: number of files that may be read at a time after an epoch that killed; None for no limit.
        poisoned: the versions that are given up.
        suspended: view → the reason why it is computed no longer.
        alone_s: seconds at the beginning in which one view is computed at a time.
        spent: source → LIST requests of the last hour, see `RequestBudget`.
        num_fetchers: number of fetch actors of the last attempt; None for the fewest.
        fetcher_bounds: the fewest and the most fetch actors; None to use the settings.
        flow: the pause and the throttle that are in force from the first barrier on.
        began_at: time at which the run began; the sources that it adds are declared since then.
    """

    run: str
    number: int = 1
    held_root: bool = False
    replaces_term: int | None = None
    replaces: frozenset[str] = frozenset()
    so_far: RunTotals = RunTotals()
    files_at_once: int | None = None
    poisoned: Mapping[FileKey, Poisoned] = field(default_factory=dict)
    suspended: Mapping[str, str] = field(default_factory=dict)
    alone_s: float = 0.0
    spent: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    num_fetchers: int | None = None
    fetcher_bounds: tuple[int, int] | None = None
    flow: tuple[FlowCommand, ...] = ()
    began_at: datetime | None = None

    def fetchers(self, settings: FetchSettings) -> tuple[int, int, int]:
        """Numbers of fetch actors: at first, the fewest, and the most."""
        fewest, most = self.fetcher_bounds or settings.fetcher_bounds
        return min(most, max(fewest, self.num_fetchers or fewest)), fewest, most
