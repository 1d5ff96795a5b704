"""The facts about a root that the blocks of `slackwater status` share, and the face of these blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from slackwater.cli.terminal.output import Output
from slackwater.status.text import shell_root
from state.clock import SystemClock
from state.location import Location

if TYPE_CHECKING:
    import pyarrow as pa

    from slackwater.reading.store import Store
    from slackwater.reading.tables.run_files import RunFiles
    from slackwater.status.run_status import RunStatus
    from state.ownership.owner import Owner


class RootBlock(Protocol):
    """A part of `slackwater status`: the same facts as values of JSON, and as tables and lines."""

    def document(self) -> Mapping[str, Any]:
        """The facts, by their names in the JSON document."""
        ...

    def show(self, output: Output) -> None:
        """Prints the facts for people."""
        ...


@dataclass(frozen=True)
class RootFacts:
    """A root at one moment.

    Args:
        store: a frozen store.
        owner: the process that runs on the root or ran last.
    """

    store: Store
    owner: Owner | None
    now: datetime

    @classmethod
    def of(cls, store: Store) -> RootFacts:
        store = store.frozen()
        return cls(store, store.owner(), SystemClock().now())

    @cached_property
    def root(self) -> str:
        """The root, as an argument of a command."""
        return shell_root(Location(self.store.root))

    @cached_property
    def epochs(self) -> pa.Table:
        """Every retained epoch with the time of its commit."""
        return self.store.epoch_times()

    @cached_property
    def files(self) -> pa.Table:
        """The numbers of files by source and status."""
        return self.store.ledger.count_files()

    @cached_property
    def sources(self) -> Sequence[Mapping[str, Any]]:
        """The rows of `Ledger.sources`."""
        rows: list[Mapping[str, Any]] = self.store.ledger.sources().to_pylist()
        return rows

    @cached_property
    def backfills(self) -> Sequence[Mapping[str, Any]]:
        """The rows of `Views.backfills`."""
        rows: list[Mapping[str, Any]] = self.store.views.backfills().to_pylist()
        return rows

    @cached_property
    def run(self) -> RunStatus | None:
        """The status that the last run has written; None without one that this version can read."""
        from slackwater.status.run_status import RunStatus

        return RunStatus.of_owner(self.owner)

    @cached_property
    def run_files(self) -> RunFiles:
        """The files that a living run has listed."""
        from slackwater.reading.tables.run_files import RunFiles

        return RunFiles.read(self.store.handle().latest(), self.owner)

    @property
    def is_over(self) -> bool:
        """True if no run is alive on the root."""
        return self.owner is None or self.owner.is_gone()
