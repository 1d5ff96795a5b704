"""What an attempt takes over from those before it in the same run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from actors.files import FileKey
from actors.settings import FetchSettings
from state.tables.records import EpochCounts


@dataclass(frozen=True)
class RunTotals:
    """What a run has committed: its last epoch, how many, and what they brought."""

    epoch: int = 0
    epochs: int = 0
    counts: EpochCounts = field(default_factory=EpochCounts)


@dataclass(frozen=True)
class AttemptPlan:
    """How an attempt begins.

    Args:
        run: which run this is; the head names it from the take-over on.
        number: 1 for the first attempt of a run.
        held_root: whether an earlier attempt of this run has won the head; if another run is in it now, this one is
            fenced.
        replaces_term: the head's term when the run began; None to take the root from whoever has it.  A higher term of
            another run fences this one.
        replaces: runs whose place this one takes: their terms do not fence it, however late they are.
        so_far: what the earlier attempts have committed.
        files_at_once: how many files may be read at a time after an epoch that killed; None for no limit.
        poisoned: versions that are given up, with the reason.
        spent: source → LIST requests of the last hour, see `RequestBudget`.
        num_fetchers: how many fetch actors the last attempt had; None for the fewest.
        fetcher_bounds: the fewest and the most there may be; None for what the settings say.
        began_at: when the run began; sources that it declares are declared since then.
    """

    run: str
    number: int = 1
    held_root: bool = False
    replaces_term: int | None = None
    replaces: frozenset[str] = frozenset()
    so_far: RunTotals = RunTotals()
    files_at_once: int | None = None
    poisoned: Mapping[FileKey, str] = field(default_factory=dict)
    spent: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    num_fetchers: int | None = None
    fetcher_bounds: tuple[int, int] | None = None
    began_at: datetime | None = None

    def fetchers(self, settings: FetchSettings) -> tuple[int, int, int]:
        """How many fetch actors there are at first, the fewest, and the most."""
        fewest, most = self.fetcher_bounds or settings.fetcher_bounds
        return min(most, max(fewest, self.num_fetchers or fewest)), fewest, most
