"""Watcher of a root from any machine: by the file of its owner, and by the committed epochs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from slackwater.reading.store import Store
from slackwater.reading.watching.owner_watch import OwnerLife, OwnerState, OwnerWatch
from slackwater.reading.watching.stored_status import stored_status
from slackwater.status.run_status import RunStatus
from state.capabilities.store_record import read_record
from state.clock import Clock
from state.errors import StoreNotFoundError
from state.location import Location
from state.ownership.owner import Owner, read_owner


@dataclass(frozen=True)
class RootLook:
    """The state of a root at one look.

    Args:
        owner: the process that runs on the root or ran last.
        status: the status that a living run reports; otherwise the committed state.
        warning: a fault, in one line; empty without one.
    """

    owner: Owner | None
    life: OwnerLife
    status: RunStatus
    warning: str = ""

    def to_json(self) -> dict[str, Any]:
        """The look as values for `json.dumps`, apart from times."""
        owner = self.owner
        names = ("run_id", "pipeline", "host", "pid", "since", "renewed_at", "phase", "term", "last_error")
        return {
            "life": self.life.state,
            "warning": self.warning,
            "owner": None if owner is None else {name: getattr(owner, name) for name in names},
            "status": self.status.to_json(),
        }


class RootWatcher:
    """Looks at a root again and again.

    Args:
        clock: the clock that measures silence.
    """

    def __init__(self, root: Location, clock: Clock) -> None:
        self._root, self._clock = root, clock
        self._store: Store | None = None
        self._watch = OwnerWatch(clock)
        self._stored: tuple[object, RunStatus] | None = None
        self._capable: tuple[str | None, str] | None = None

    def look(self) -> RootLook:
        """The state of the root now.

        Raises:
            StoreNotFoundError: no pipeline ran here, or the root is gone.
            StorageError: the root cannot be read now.
        """
        owner = read_owner(self._root)
        store = self._opened(may_be_missing=owner is not None)
        life = self._watch.look(owner)
        report = RunStatus.of_owner(owner) if life.runs else None
        if report is not None:
            status = replace(report, seconds=report.seconds + life.silent_s)
        else:
            status = self._committed(store, owner, life.state)
        return RootLook(owner, life, status, _warning(owner, life) or self._capabilities(owner))

    def _capabilities(self, owner: Owner | None) -> str:
        """The warning about the store of the root; only a start of a run changes it."""
        run_id = None if owner is None else owner.run_id
        if self._capable is None or self._capable[0] != run_id:
            record = read_record(self._root)
            self._capable = run_id, "" if record is None else record.warning(self._root)
        return self._capable[1]

    def _opened(self, may_be_missing: bool) -> Store | None:
        if self._store is None:
            try:
                self._store = Store(self._root, self._clock)
            except StoreNotFoundError:
                # A run reports its first start before its first commit.
                if not may_be_missing:
                    raise
        return self._store

    def _committed(self, store: Store | None, owner: Owner | None, life: OwnerState) -> RunStatus:
        """The committed state; it is read again only after another epoch, since the ledger may be long."""
        phase = life if owner is None or life in ("gone", "silent") else owner.phase
        if store is None:
            return RunStatus(phase=phase, message="nothing is committed yet")
        key = store.latest_epoch()
        if self._stored is None or self._stored[0] != key:
            self._stored = (key, stored_status(store))
        message = "no run is alive here; this is the last commit" if life in ("none", "ended") else ""
        return replace(self._stored[1], phase="stopped" if phase == "none" else phase, message=message)


def _warning(owner: Owner | None, life: OwnerLife) -> str:
    if owner is None:
        return ""
    if life.state == "gone":
        return f"process {owner.pid} is gone; a new start continues from the last commit, which is shown here"
    if life.state == "silent":
        return (
            f"no sign of process {owner.pid} on {owner.host} for {life.silent_s:.0f} s: it is dead, or cannot "
            "reach the root; this is the last commit"
        )
    has_failed = life.state == "ended" and owner.phase == "failed" and owner.last_error
    return f"failed: {owner.last_error}" if has_failed else ""
