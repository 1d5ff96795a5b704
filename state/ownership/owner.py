"""`<root>/owner.json`: the process that runs on a root, and its status.  Safety rests on the head alone."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any

from obstore.store import ObjectStore

from state.clock import Clock
from state.errors import FencedError, OwnedError, RunFailedError, StorageError
from state.json_document import json_of, moment_of
from state.location import Location
from state.ownership.conditional_file import ConditionalFile, FileChangedError, Version
from state.ownership.host import Host, ThisProcess, Thread
from state.ownership.process_identity import ProcessIdentity
from state.tables.discovery_progress import DiscoveryProgress

_NAME = "owner.json"
_POLL_S = 0.5
_THIS_PROCESS = ThisProcess()
_runs = itertools.count(1)
_TIMES = ("since", "renewed_at")


@dataclass(frozen=True)
class Owner:
    """The content of `owner.json`.

    Args:
        run_id: a name that no other run has.
        pipeline: the name of the pipeline.
        process: the process of the run.
        since: the start of the run.
        renewed_at: the time of this renewal, by the owner's clock.
        phase: the phase of the run, or how it ended.
        term: the term of the run; 0 before its take-over.
        sources: the progress of discovery by source, from this run or from the one before.
        last_error: the last error in one line, or None.
        fetchers: the number of fetch actors.
        scaling: the reason for that number, if the run has chosen it by load.
        status: the status of the run at this renewal, as JSON; None before the first.
        released: true when the run has ended and released the root.
        renewal: the number of writes of this run: no two have the same content, even if the owner's clock does not
            move.
    """

    run_id: str
    pipeline: str
    process: ProcessIdentity
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
    renewal: int = 0

    @property
    def host(self) -> str:
        """The name of the machine."""
        return self.process.host

    @property
    def pid(self) -> int:
        """The process id in its namespace."""
        return self.process.pid

    def is_dead(self) -> bool:
        """True if the process has ended for certain; False if it lives, or cannot be seen from here."""
        return self.process.has_ended()

    def is_gone(self) -> bool:
        """True if it has released the root, or is dead."""
        return self.released or self.is_dead()


def new_run_id(clock: Clock) -> str:
    """A name that no other run has, on any machine."""
    process = ProcessIdentity.current()
    milliseconds = int(clock.now().timestamp() * 1000)
    return f"{process.host}-{process.namespace_digest}-{process.pid}-{milliseconds}-{next(_runs)}"


def read_owner(root: Location) -> Owner | None:
    """The owner in `owner.json`, alive or dead; None if the file does not exist, or is torn.

    Raises:
        StorageError: the root cannot be read.
    """
    found = _read(owner_file(root))
    return None if found is None else found.owner


def owner_file(root: Location, client: ObjectStore | None = None) -> ConditionalFile:
    """The file `owner.json` of a root; see `ConditionalFile`."""
    return ConditionalFile(root, _NAME, client)


@dataclass(frozen=True)
class _Found:
    """The file as it was read; torn content, for example after a power cut, has no owner."""

    owner: Owner | None
    version: Version

    def is_of_run(self, other: _Found) -> bool:
        """True if the same run wrote both."""
        return self.owner is not None and other.owner is not None and self.owner.run_id == other.owner.run_id


class Ownership:
    """Holds `owner.json` for one run, renewed by a thread of its own.

    Args:
        root: the root that the run writes to.
        clock: the clock for the written times and for the wait for another owner.
        run_id: a name that no other run has.
        pipeline: the name of the pipeline, for messages to other runs.
        interval_s: seconds between renewals.
        watch_s: seconds without a renewal after which the root of another owner is taken.
        file: `owner.json`; None for the file in the root.
        host: the process of the run.
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
        file: ConditionalFile | None = None,
        host: Host = _THIS_PROCESS,
    ) -> None:
        self._root = root
        self._file = owner_file(root) if file is None else file
        self._host = host
        self._clock = clock
        self._interval_s = interval_s
        self._watch_s = watch_s
        self._lock = threading.Lock()
        self._replaced: frozenset[str] = frozenset()
        self._wake = host.event()
        self._ended = threading.Event()
        self._lost = threading.Event()
        self._failure: Exception | None = None
        self._thread: Thread | None = None
        self._notify: Callable[[], Mapping[str, Any]] | None = None
        now = clock.now()
        self._owner = Owner(run_id, pipeline, host.identity, now, now)

    @property
    def run_id(self) -> str:
        return self._owner.run_id

    @property
    def replaced(self) -> frozenset[str]:
        """The id of the previous owner's run; empty without one."""
        return self._replaced

    @property
    def lost(self) -> bool:
        """True if `owner.json` names another run."""
        return self._lost.is_set()

    def check(self) -> None:
        """Checks that the root is still this run's, as far as the renewals know.

        Raises:
            FencedError: `owner.json` names another run.
            RunFailedError: the renewals have ended by an error.
        """
        if self.lost:
            raise FencedError(f"{self._root} was taken over by another process; this run has stopped for good")
        if self._failure is not None:
            raise RunFailedError(
                f"{self._root}/{_NAME} is not renewed any more ({type(self._failure).__name__}: {self._failure}): "
                "start the run again, and report this"
            ) from self._failure

    def acquire(self, *, takeover: bool = False) -> None:
        """Becomes the owner, and starts the renewals.

        A torn `owner.json` is treated as the file of a silent owner: its run may live.

        Args:
            takeover: true to replace another owner without waiting.

        Raises:
            OwnedError: another process runs on this root.
            StorageError: the root cannot be written.
        """
        found = _read(self._file)
        if found is not None and not (takeover or self._is_free(found)):
            if self._has_just_renewed(found):
                raise self._refusal(found.owner)
            found = self._watch(found)
        while (other := self._replace(found)) is not None:
            if not (takeover and found is not None and found.is_of_run(other)):
                raise self._refusal(other.owner)
            found = other  # the owner that is replaced has renewed the file meanwhile
        self._replaced = frozenset() if found is None or found.owner is None else frozenset({found.owner.run_id})
        self._thread = self._host.start(self._renew_until_ended)

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
        """Changes the content of the next renewal; a new phase, term or number of fetch actors is written at once.

        Args:
            phase: the phase of the run.
            term: the term of the run.
            sources: the progress of discovery by source; other sources keep theirs.
            last_error: one line; the empty text clears it.
            fetchers: the number of fetch actors.
            scaling: the reason for that number, or the empty text.
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

    def notify(self, status: Callable[[], Mapping[str, Any]]) -> None:
        """Sets the function that returns the status of the run as JSON; every renewal calls it."""
        self._notify = status

    def renew(self) -> None:
        """Writes `owner.json` once; if it names another run, this run is `lost` and writes no more.

        Raises:
            StorageError: the root cannot be read or written; the next renewal tries again.
        """
        found = self._look()
        if self.lost:
            return
        try:
            self._write(None if found is None else found.version)
        except FileChangedError:
            self._look()

    def confirm(self) -> None:
        """Checks that no run has taken the root until now: the state of the store that was read before is not a later
        owner's.

        A start calls this between the reading of the head and its first commit.  A run that takes the root afterwards
        has a later term.

        Raises:
            FencedError: `owner.json` names another run.
            RunFailedError: see `check`.
            StorageError: see `renew`.
        """
        self.renew()
        self.check()

    def release(self, phase: str = "stopped") -> None:
        """Ends the renewals and writes the last phase, if the root is still this run's."""
        self._ended.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            sources = {name: each.at_rest() for name, each in self._owner.sources.items()}
            self._owner = replace(self._owner, phase=phase, sources=sources, released=True)
        if self._failure is not None:
            self._notify = None  # it may be the cause
        try:
            self.renew()
        except StorageError:
            pass  # the next run waits for `watch_s` seconds instead of starting at once

    def _replace(self, found: _Found | None) -> _Found | None:
        """Replaces the file that was found by this run's.  Returns the present file if it has changed since."""
        if found is not None and found.owner is not None:
            # The progress of the previous run is valid until this run reports its own.
            self.update(sources={name: each.at_rest() for name, each in found.owner.sources.items()})
        try:
            self._write(None if found is None else found.version)
            return None
        except FileChangedError:
            other = _read(self._file)
        if other is None:
            raise self._refusal(None)
        return None if self._wrote(other) else other

    def _look(self) -> _Found | None:
        """Reads the file; if it names another run, this one is lost.  A torn file names none."""
        found = _read(self._file)
        if found is not None and found.owner is not None and not self._wrote(found):
            self._lost.set()
        return found

    def _wrote(self, found: _Found) -> bool:
        """True if this run wrote the file: after a lost answer the repeated request of this run is refused."""
        return found.owner is not None and found.owner.run_id == self._owner.run_id

    def _renew_until_ended(self) -> None:
        while not self._ended.is_set() and not self.lost:
            self._wake.wait(self._interval_s)
            self._wake.clear()
            if self._ended.is_set():
                return
            try:
                self.renew()
            except StorageError:
                continue  # a missing renewal costs at most the root, never rows: the head decides
            except Exception as error:
                self._failure = error  # `check` raises it in the thread of the run
                return

    def _watch(self, found: _Found) -> _Found | None:
        deadline = self._clock.monotonic() + self._watch_s
        while self._clock.monotonic() < deadline:
            self._clock.sleep(_POLL_S)
            now = _read(self._file)
            if now is None or self._is_free(now):
                return now
            if now.owner != found.owner:
                raise self._refusal(now.owner)
        return found

    def _is_free(self, found: _Found) -> bool:
        """True if the run in the file is over for certain."""
        return found.owner is not None and (found.owner.released or self._host.has_ended(found.owner.process))

    def _has_just_renewed(self, found: _Found) -> bool:
        """True if the run in the file lives on this machine, whose clock it shares, and has renewed it in time.

        A clock that has not moved since proves nothing.
        """
        if found.owner is None or not self._host.lives(found.owner.process):
            return False
        return timedelta(0) < self._clock.now() - found.owner.renewed_at <= timedelta(seconds=2 * self._interval_s)

    def _refusal(self, owner: Owner | None) -> OwnedError:
        if owner is None:
            return OwnedError(f"{self._root} was taken by another process at this moment: look at `status`, try again")
        return OwnedError(
            f"{self._root} is owned by pipeline {owner.pipeline!r}, pid {owner.pid} on {owner.host}, since "
            f"{owner.since:%Y-%m-%d %H:%M:%S} UTC ({owner.phase}): stop it, or if it is dead wait "
            f"{self._watch_s:.0f} s, or take over with --takeover"
        )

    def _write(self, version: Version | None) -> None:
        status = self._owner.status if self._notify is None else self._notify()
        with self._lock:
            number = self._owner.renewal + 1
            owner = self._owner = replace(self._owner, renewed_at=self._clock.now(), status=status, renewal=number)
        self._file.replace(_to_json(owner), version)


def _read(file: ConditionalFile) -> _Found | None:
    found = file.read()
    return None if found is None else _Found(_from_json(found.content), found.version)


def _to_json(owner: Owner) -> bytes:
    return json.dumps(asdict(owner), indent=1, default=datetime.isoformat).encode()


def _from_json(content: bytes) -> Owner | None:
    try:
        recorded = json_of(content)
        known = {each.name: recorded[each.name] for each in fields(Owner) if each.name in recorded}
        times = {name: moment_of(recorded[name]) for name in _TIMES}
        process = recorded["process"]
        names = [each.name for each in fields(ProcessIdentity) if each.name in process]
        identity = ProcessIdentity(**{name: process[name] for name in names})
        sources = {name: DiscoveryProgress.of_json(each) for name, each in recorded.get("sources", {}).items()}
        return Owner(**{**known, **times, "process": identity, "sources": sources})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
