"""`<root>/owner.json`: which process runs on a root.  A courtesy that saves waiting; safety rests on the head alone."""

from __future__ import annotations

import itertools
import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any

import obstore
import psutil
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PreconditionError

from state.clock import Clock
from state.errors import BucketNotFoundError, OwnedError, StorageError
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.tables.discovery_progress import DiscoveryProgress

_NAME = "owner.json"
_POLL_S = 0.5
_runs = itertools.count(1)
_TIMES = ("since", "renewed_at")


@dataclass(frozen=True)
class Owner:
    """What `owner.json` says.

    Args:
        run_id: tells this run apart from every other.
        pipeline: its name.
        host: the name of the machine.
        pid: the process on it.
        pid_started: when that process started, in seconds since 1970: a pid that is used again is another process.
        since: when the run began.
        renewed_at: when this was written, by the owner's clock.
        phase: what the run is doing, or how it ended.
        term: the term it holds, 0 before it has one.
        sources: how the files of each are being found, as far as this run or the one before has said that.
        last_error: one line, or None.
        fetchers: how many fetch actors there are.
        scaling: why, if the run has decided it by how much there is to do.
        status: how far the run was when this was written, as JSON; None until it has said that.
        released: whether the run has ended and let go of the root.
    """

    run_id: str
    pipeline: str
    host: str
    pid: int
    pid_started: float
    since: datetime
    renewed_at: datetime
    phase: str = "starting"
    term: int = 0
    sources: Mapping[str, DiscoveryProgress] = field(default_factory=dict)
    last_error: str | None = None
    fetchers: int = 0
    scaling: str = ""
    status: Mapping[str, Any] | None = None
    released: bool = False

    def is_dead(self) -> bool:
        """Whether the process ran on this machine and does so no more."""
        if self.host != socket.gethostname():
            return False
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.pid_started) < 1.0
            return not same or process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True


def new_run_id(clock: Clock) -> str:
    """A name that no other run has, on any machine."""
    milliseconds = int(clock.now().timestamp() * 1000)
    return f"{socket.gethostname()}-{os.getpid()}-{milliseconds}-{next(_runs)}"


@dataclass(frozen=True)
class _Found:
    owner: Owner
    version: Mapping[str, str | None]


def read_owner(root: Location) -> Owner | None:
    """The owner that `owner.json` names, living or not; None if there is none.

    Raises:
        StorageError: the root cannot be read.
    """
    found = _read(root)
    return None if found is None else found.owner


class Ownership:
    """Holds `owner.json` for one run, renewed from a thread of its own.

    Args:
        root: the root that the run writes to.
        clock: gives the times that are written, and paces the watching of another owner.
        run_id: tells this run apart from every other.
        pipeline: its name, for those who are refused.
        interval_s: seconds between renewals.
        watch_s: seconds for which another owner must be silent before its root is taken.
    """

    def __init__(
        self,
        root: Location,
        clock: Clock,
        *,
        run_id: str,
        pipeline: str,
        interval_s: float = 5.0,
        watch_s: float = 20.0,
    ) -> None:
        self._root = root
        self._clock = clock
        self._interval_s = interval_s
        self._watch_s = watch_s
        self._lock = threading.Lock()
        self._version: Mapping[str, str | None] | None = None
        self._replaced: frozenset[str] = frozenset()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._lost = threading.Event()
        self._thread: threading.Thread | None = None
        self._tell: Callable[[], Mapping[str, Any]] | None = None
        now = clock.now()
        pid = os.getpid()
        started = psutil.Process(pid).create_time()
        self._owner = Owner(run_id, pipeline, socket.gethostname(), pid, started, now, now)

    @property
    def run_id(self) -> str:
        return self._owner.run_id

    @property
    def replaced(self) -> frozenset[str]:
        """The run that was the owner before, if there was one."""
        return self._replaced

    @property
    def lost(self) -> bool:
        """Whether another run has written itself into `owner.json`."""
        return self._lost.is_set()

    def acquire(self, *, takeover: bool = False) -> None:
        """Becomes the owner, and begins to renew.

        Args:
            takeover: do not ask whether another owner lives.

        Raises:
            OwnedError: another process runs on this root.
            StorageError: the root cannot be written.
        """
        found = _read(self._root)
        if found is not None and not (takeover or found.owner.released or found.owner.is_dead()):
            found = self._watch(found)
        if found is not None:
            # What the run before has said of them holds until this one has something to say.
            self.update(sources={name: each.at_rest() for name, each in found.owner.sources.items()})
        try:
            self._write(None if found is None else found.version)
        except (AlreadyExistsError, PreconditionError):
            other = _read(self._root)
            if other is None or not self._wrote(other):
                raise self._refusal(self._owner if other is None else other.owner) from None
        self._replaced = frozenset() if found is None else frozenset({found.owner.run_id})
        self._thread = threading.Thread(target=self._renew_until_ended, name="owner", daemon=True)
        self._thread.start()

    def update(
        self,
        *,
        phase: str | None = None,
        term: int | None = None,
        sources: Mapping[str, DiscoveryProgress] | None = None,
        last_error: str | None = None,
        fetchers: int | None = None,
        scaling: str | None = None,
    ) -> None:
        """Changes what the next renewal writes; a new phase, term or number of fetch actors is written at once.

        Args:
            phase: what the run is doing now.
            term: the term that it holds.
            sources: how the files of each are being found; of those that are not named it is as it was.
            last_error: one line; the empty text clears it.
            fetchers: how many fetch actors there are.
            scaling: why, or the empty text.
        """
        changes: dict[str, Any] = {
            "phase": phase,
            "term": term,
            "last_error": last_error,
            "fetchers": fetchers,
            "scaling": scaling,
        }
        changes = {name: value for name, value in changes.items() if value is not None}
        with self._lock:
            known = {**self._owner.sources, **(sources or {})}
            self._owner = replace(self._owner, sources=known, **changes)
        if phase is not None or term is not None or fetchers is not None:
            self._wake.set()

    def tell(self, status: Callable[[], Mapping[str, Any]]) -> None:
        """From now on every renewal writes what this gives at that moment: how far the run is, as JSON."""
        self._tell = status

    def renew(self) -> None:
        """Writes `owner.json` once, unless another run is in it: then this one is `lost`, and writes no more.

        Raises:
            StorageError: the root cannot be read or written; the next renewal tries again.
        """
        found = _read(self._root)
        if found is not None and not self._wrote(found):
            self._lost.set()
        if self.lost:
            return
        try:
            self._write(None if found is None else found.version)
        except (AlreadyExistsError, PreconditionError):
            found = _read(self._root)
            if found is not None and not self._wrote(found):
                self._lost.set()

    def release(self, phase: str = "stopped") -> None:
        """Ends the renewing and writes the last phase, if the root is still ours."""
        self._ended.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            sources = {name: each.at_rest() for name, each in self._owner.sources.items()}
            self._owner = replace(self._owner, phase=phase, sources=sources, released=True)
        try:
            self.renew()
        except StorageError:
            pass  # the next run watches for a while instead of starting at once

    def _wrote(self, found: _Found) -> bool:
        """Whether what is there is this run's: an answer may be lost, and its request is then refused when repeated."""
        return found.owner.run_id == self._owner.run_id

    def _renew_until_ended(self) -> None:
        while not self._ended.is_set() and not self.lost:
            self._wake.wait(self._interval_s)
            self._wake.clear()
            if self._ended.is_set():
                return
            try:
                self.renew()
            except StorageError:
                continue  # silence for a while costs at most this courtesy; the head decides

    def _watch(self, found: _Found) -> _Found | None:
        deadline = self._clock.monotonic() + self._watch_s
        while self._clock.monotonic() < deadline:
            self._clock.sleep(_POLL_S)
            now = _read(self._root)
            if now is None or now.owner.released or now.owner.is_dead():
                return now
            if now.owner != found.owner:
                raise self._refusal(now.owner)
        return found

    def _refusal(self, owner: Owner) -> OwnedError:
        return OwnedError(
            f"{self._root} is owned by pipeline {owner.pipeline!r}, pid {owner.pid} on {owner.host}, since "
            f"{owner.since:%Y-%m-%d %H:%M:%S} UTC ({owner.phase}): stop it, or if it is dead wait "
            f"{self._watch_s:.0f} s, or take over with --takeover"
        )

    def _write(self, version: Mapping[str, str | None] | None) -> None:
        status = self._owner.status if self._tell is None else self._tell()
        with self._lock:
            self._owner = replace(self._owner, renewed_at=self._clock.now(), status=status)
            owner = self._owner
        body = _to_json(owner)
        try:
            client = object_client(self._root)
            if version is None:
                obstore.put(client, _NAME, body, mode="create")
            elif self._root.is_local:
                # A local file cannot be replaced on a condition; the caller has just read it.
                obstore.put(client, _NAME, body, mode="overwrite")
            else:
                update: Any = {name: value for name, value in version.items() if value is not None}
                obstore.put(client, _NAME, body, mode=update)
        except (AlreadyExistsError, PreconditionError):
            raise
        except (BaseError, OSError) as error:
            raise storage_error(error, self._root) from None


def _read(root: Location) -> _Found | None:
    if root.is_local and not root.path.is_dir():
        return None
    try:
        result = obstore.get(object_client(root), _NAME)
        fields = json.loads(bytes(result.bytes()))
    except (FileNotFoundError, NotFoundError) as error:
        reason = storage_error(error, root)
        if isinstance(reason, BucketNotFoundError):
            raise reason from None
        return None
    except (BaseError, OSError) as error:
        raise storage_error(error, root) from None
    version = {"e_tag": result.meta.get("e_tag"), "version": result.meta.get("version")}
    return _Found(_from_json(fields), version)


def _to_json(owner: Owner) -> bytes:
    return json.dumps(asdict(owner), indent=1, default=datetime.isoformat).encode()


def _from_json(recorded: dict[str, Any]) -> Owner:
    known = {each.name: recorded[each.name] for each in fields(Owner) if each.name in recorded}
    times = {name: datetime.fromisoformat(recorded[name]) for name in _TIMES}
    sources = {name: DiscoveryProgress.of_json(each) for name, each in recorded.get("sources", {}).items()}
    return Owner(**{**known, **times, "sources": sources})
