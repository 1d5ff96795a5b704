"""The files that a run has listed, by its last report: the store has them from the commit of their epoch on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slackwater.reading.tables.file_search import count_files
from slackwater.status.run_status import RunStatus, SourceStatus
from state.ownership.owner import Owner
from state.store.store import StateStore

_UNFINISHED = ("waiting", "reading")
_FINISHED = ("done", "quarantined", "vanished")


@dataclass(frozen=True)
class RunFiles:
    """The files of the sources of a living run; empty without one.

    Args:
        status: the last report of the run; None if nothing runs, or if this version cannot read the report.
        in_flight: source → the files that the run has listed, and that no committed epoch has as finished.
        uncommitted: source → the files in flight that no committed epoch has listed.
    """

    status: RunStatus | None = None
    in_flight: Mapping[str, int] = field(default_factory=dict)
    uncommitted: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, store: StateStore, owner: Owner | None) -> RunFiles:
        """The files of the run on a root.

        Args:
            store: a handle on the store.
            owner: the process that runs on the root or ran last.

        Raises:
            StorageError: the root cannot be read.
        """
        status = None if owner is None or owner.is_gone() else RunStatus.of_owner(owner)
        if status is None:
            return cls()
        listed = {name: _files(source) for name, source in status.sources.items()}
        finished, known = dict.fromkeys(listed, 0), dict.fromkeys(listed, 0)
        for row in count_files(store).to_pylist():
            if row["source"] in listed and row["status"] in (*_UNFINISHED, *_FINISHED):
                known[row["source"]] += row["files"]
                finished[row["source"]] += row["files"] if row["status"] in _FINISHED else 0
        # The report may be older than the last commit.
        return cls(
            status,
            {name: max(0, count - finished[name]) for name, count in listed.items()},
            {name: max(0, count - known[name]) for name, count in listed.items()},
        )


def _files(source: SourceStatus) -> int:
    return sum(getattr(source, status) for status in (*_UNFINISHED, *_FINISHED))
