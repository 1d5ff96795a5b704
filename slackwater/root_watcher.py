"""Whoever runs on a root, watched from any machine: by what it writes, and by what is committed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from slackwater.run_status import RunStatus
from slackwater.store import Store
from slackwater.stored_status import stored_status
from state.clock import Clock
from state.errors import StoreNotFoundError
from state.location import Location
from state.owner import Owner, read_owner

_SILENT_S = 20.0


@dataclass(frozen=True)
class RootLook:
    """What a look at a root has shown.

    Args:
        life: `none`: nobody has run here; `unheard`: somebody says to run, and has not been heard of since the watching
            began; `living`: and has been; `silent`: but for 20 s no more; `gone`: its process is dead; `ended`.
        owner: who runs, or ran last.
        silent_s: for how long the owner has written nothing, by the clock of the one who watches.
        status: what a living run says of itself; otherwise what is committed.
        warning: what is wrong, in a line; empty if nothing is.
        took_over: whether the owner has taken the root from a living one since the watching began.
    """

    life: str
    owner: Owner | None
    silent_s: float
    status: RunStatus
    warning: str = ""
    took_over: bool = False

    def to_json(self) -> dict[str, Any]:
        """The same as what `json.dumps` takes, but for times."""
        owner = self.owner
        names = ("run_id", "pipeline", "host", "pid", "since", "renewed_at", "phase", "term", "last_error")
        return {
            "life": self.life,
            "warning": self.warning,
            "owner": None if owner is None else {name: getattr(owner, name) for name in names},
            "status": self.status.to_json(),
        }


class RootWatcher:
    """Looks at a root again and again.

    Whether the owner lives is told by what it writes while it is watched; the clocks of two machines are not compared.

    Args:
        root: what is watched.
        clock: counts the seconds of silence.
    """

    def __init__(self, root: Location, clock: Clock) -> None:
        self._root, self._clock = root, clock
        self._store: Store | None = None
        self._owner: Owner | None = None
        self._changed_s = clock.monotonic()
        self._was_heard = self._took_over = False
        self._stored: tuple[object, RunStatus] | None = None

    def look(self) -> RootLook:
        """How it is now.

        Raises:
            StoreNotFoundError: nobody has ever run here, or the root is gone.
            StorageError: the root cannot be read now.
        """
        owner = read_owner(self._root)
        store = self._opened(may_be_missing=owner is not None)
        self._hear(owner)
        silent_s = self._clock.monotonic() - self._changed_s
        life = self._life(owner, silent_s)
        told = None
        if owner is not None and life in ("living", "unheard"):
            told = None if owner.status is None else RunStatus.of_json(owner.status)
        if told is not None:
            status = replace(told, seconds=told.seconds + silent_s)
        else:
            status = self._committed(store, owner, life)
        return RootLook(life, owner, silent_s, status, _warning(owner, life, silent_s), self._took_over)

    def _opened(self, may_be_missing: bool) -> Store | None:
        if self._store is None:
            try:
                self._store = Store(self._root, self._clock)
            except StoreNotFoundError:
                # A run that starts for the first time says so before it has committed anything.
                if not may_be_missing:
                    raise
        return self._store

    def _hear(self, owner: Owner | None) -> None:
        before, self._owner = self._owner, owner
        if owner is None or before is None:
            self._changed_s = self._clock.monotonic()
        elif (owner.run_id, owner.renewed_at) != (before.run_id, before.renewed_at):
            self._changed_s, self._was_heard = self._clock.monotonic(), True
            if owner.run_id != before.run_id:
                self._took_over = not before.released and not before.is_dead()

    def _life(self, owner: Owner | None, silent_s: float) -> str:
        if owner is None:
            return "none"
        if owner.released:
            return "ended"
        if owner.is_dead():
            return "gone"
        if silent_s > _SILENT_S:
            return "silent"
        return "living" if self._was_heard else "unheard"

    def _committed(self, store: Store | None, owner: Owner | None, life: str) -> RunStatus:
        """What the store says; read again only when there is another epoch, since the ledger may be long."""
        phase = life if owner is None or life in ("gone", "silent") else owner.phase
        if store is None:
            return RunStatus(phase=phase, message="nothing is committed yet")
        epochs = store.epochs()["epoch"]
        key = epochs[-1].as_py() if len(epochs) else 0
        if self._stored is None or self._stored[0] != key:
            self._stored = (key, stored_status(store))
        message = "nobody runs here; this is what is committed" if life in ("none", "ended") else ""
        return replace(self._stored[1], phase="stopped" if phase == "none" else phase, message=message)


def _warning(owner: Owner | None, life: str, silent_s: float) -> str:
    if owner is None:
        return ""
    if life == "gone":
        return f"process {owner.pid} is gone; a new start goes on from what is committed, which is shown here"
    if life == "silent":
        return (
            f"nothing heard of process {owner.pid} on {owner.host} for {silent_s:.0f} s: it is dead, or cannot reach "
            "the root; this is what is committed"
        )
    return f"failed: {owner.last_error}" if life == "ended" and owner.phase == "failed" and owner.last_error else ""
