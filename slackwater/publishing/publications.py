"""The publications of a run, as the run sees them: a process beside it, and what it reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal

import structlog

from actors.protocol.run_state import RunState
from actors.telemetry.logging import redact
from slackwater.places.declared_place import DeclaredPlace
from slackwater.publishing.declaration import DeclaredPublication, places_of
from slackwater.publishing.publication_loop import LONGEST_PAUSE_S, PublicationReport
from slackwater.publishing.publishing_process import MODULE, PublishingJob, publications_to_json
from slackwater.status.run_status import PublicationStatus
from state.clock import Clock
from state.location import Location

LAST_EPOCH_S = 30.0
"""The seconds that the last epoch of a run has to be published in, before its process is ended."""

CATCH_UP_S = 600.0
"""The same for a run that ends when it has caught up."""

_MOST_TOLD = 100_000
_DEATH_S = 5.0
_IMPORTED_FROM = str(Path(__file__).parents[2])
_log = structlog.get_logger(actor="run")


class Publications:
    """Hosts the process, tells it of epochs, starts it again when it dies, and keeps its reports.

    The run waits for it only at its end.  It has a process of its own since the libraries of formats compute in Python
    and in memory: beside the loop of the views they would delay epochs.

    Args:
        root: the root of the run.
        publications: the views and their tables.
        clock: of the run.
        places: the other places of the run.
    """

    def __init__(
        self,
        root: Location,
        publications: Sequence[DeclaredPublication],
        clock: Clock,
        places: Sequence[DeclaredPlace] = (),
    ) -> None:
        checked = tuple(place.checked() for place in (*places, *places_of(publications)))
        self._job = PublishingJob(root, tuple(publications), checked)
        self._clock = clock
        self._news = threading.Condition()
        self._epoch, self._is_over = 0, False
        self._told = deque[tuple[int, datetime]](maxlen=_MOST_TOLD)
        self._reports = {number: PublicationReport(number) for number in range(len(publications))}
        self._death: str | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._host, name="publications", daemon=True)
        self._thread.start()

    @property
    def all(self) -> tuple[DeclaredPublication, ...]:
        """The views and their tables."""
        return self._job.publications

    @property
    def statuses(self) -> tuple[PublicationStatus, ...]:
        """The state of each publication, a moment ago."""
        with self._news:
            publications, reports = self._job.publications, [*self._reports.values()]
            told, death = [*self._told], self._death
        now = self._clock.now()
        return tuple(
            _status(each, report, told, death, now) for each, report in zip(publications, reports, strict=True)
        )

    def add(self, publications: Sequence[DeclaredPublication]) -> None:
        """Publishes further views, or to further tables, from now on."""
        with self._news:
            known = len(self._job.publications)
            self._job = replace(
                self._job,
                publications=(*self._job.publications, *publications),
                places=(*self._job.places, *(place.checked() for place in places_of(publications))),
            )
            self._reports |= {at: PublicationReport(at) for at in range(known, known + len(publications))}
            self._news.notify_all()

    def tell(self, state: RunState) -> None:
        """Takes a state of the run, and returns at once."""
        with self._news:
            last = self._told[-1][0] if self._told else self._epoch
            self._told += [(each.epoch, each.committed_at) for each in state.recent if each.epoch > last]
            if state.epoch > self._epoch:
                self._epoch = state.epoch
                self._news.notify_all()

    def begin_end(self) -> None:
        """No further epoch follows: the last one is being published."""
        with self._news:
            self._is_over = True
            self._news.notify_all()

    def join(self, timeout_s: float = LAST_EPOCH_S) -> None:
        """Returns when the last epoch is published, its last try has failed, or the time is over.

        Args:
            timeout_s: the longest wait in seconds; the process is killed then, which leaves each table at an epoch.
        """
        self._thread.join(timeout_s)
        with self._news:
            child = self._child
        if self._thread.is_alive() and child is not None:
            _log.warning("the last epoch is not published in time; the next run goes on", after_s=timeout_s)
            child.kill()
            self._thread.join(_DEATH_S)
            with self._news:
                self._death = f"the last epoch was not published within {timeout_s:.0f} s of the end of the run"

    def _host(self) -> None:
        """Keeps a process alive while there is something to publish."""
        deaths = 0
        while self._wait_for(lambda: self._epoch > 0, None):
            began_s = self._clock.monotonic()
            try:
                death = self._life()
            except OSError as error:
                death = f"the process that publishes cannot be started: {error}"
            with self._news:
                self._death = death
            if self._is_over:
                return
            _log.warning("the process that publishes has died; it starts again", error=death)
            deaths = 1 if self._clock.monotonic() - began_s > LONGEST_PAUSE_S else deaths + 1
            self._wait_for(lambda: self._is_over, min(LONGEST_PAUSE_S, 2.0 ** min(deaths, 16)))

    def _wait_for(self, condition: Callable[[], bool], timeout_s: float | None) -> bool:
        """Whether the condition came true before the end of the run."""
        with self._news:
            self._news.wait_for(lambda: condition() or self._is_over, timeout_s)
            return bool(condition())

    def _life(self) -> str | None:
        """Starts the process, and tells it the epochs until the end of the run.

        Returns:
            The reason why it ended before; None if it ended with the run.
        """
        path = os.pathsep.join(filter(None, (_IMPORTED_FROM, os.environ.get("PYTHONPATH"))))
        with tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(
                [sys.executable, "-m", MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C is for the run, which ends this process in its turn
            )
            assert child.stdin is not None and child.stdout is not None
            with self._news:
                self._child = child
            ended = threading.Event()
            reader = threading.Thread(target=self._read, args=(child.stdout, ended), name="publications", daemon=True)
            reader.start()
            try:
                job = self._job
                child.stdin.write(json.dumps(job.to_json()).encode() + b"\n")
                self._feed(child.stdin, ended, job)
            except OSError:
                pass  # it has died
            reader.join()
            code = child.wait()
            with self._news:
                self._child = None
            errors.seek(0)
            last = (errors.read().decode(errors="replace").strip().splitlines() or [""])[-1]
        if code == 0:
            return None
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"the process that publishes {how}{': ' if last else ''}{redact(last)}"

    def _feed(self, stdin: IO[bytes], ended: threading.Event, job: PublishingJob) -> None:
        """Reports epochs and added publications to the process, which has received a job."""
        told, known, known_places = 0, len(job.publications), len(job.places)

        def is_new() -> bool:
            return self._epoch > told or len(self._job.publications) > known or self._is_over or ended.is_set()

        while not ended.is_set():
            with self._news:
                self._news.wait_for(is_new)
                epoch, is_over, publications = self._epoch, self._is_over, self._job.publications
                places = self._job.places
            added = publications[known:]
            messages: list[dict[str, Any]] = []
            if added:
                of_added = [place.to_json() for place in places[known_places:]]
                messages.append({"publish": publications_to_json(added), "places": of_added})
            if epoch > told:
                messages.append({"epoch": epoch})
            told, known, known_places = epoch, len(publications), len(places)
            if is_over:
                messages.append({"end": True})
            for message in messages:
                stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()
            if is_over:
                return

    def _read(self, stdout: IO[bytes], ended: threading.Event) -> None:
        for line in stdout:
            report = PublicationReport.of_json(json.loads(line))
            with self._news:
                before = self._reports[report.number]
                self._reports[report.number] = report
                self._death = None
                behind = min(each.looked for each in self._reports.values())
                while self._told and self._told[0][0] <= behind:
                    self._told.popleft()
            self._log(before, report)
        with self._news:
            ended.set()
            self._news.notify_all()

    def _log(self, before: PublicationReport, report: PublicationReport) -> None:
        publication = self._job.publications[report.number]
        view, table = publication.view, str(publication.target)
        if report.error is not None and report.error != before.error:
            if report.is_failed:
                _log.warning("a publication needs you; it is tried again", view=view, table=table, error=report.error)
            else:
                _log.warning("a publication failed; it is tried again", view=view, table=table, error=report.error)
        if report.error is None and before.error is not None:
            _log.info("a publication goes on", view=view, table=table)
        if report.upkeep_error is not None and report.upkeep_error != before.upkeep_error:
            _log.warning("the upkeep of a published table failed", view=view, table=table, error=report.upkeep_error)


def _status(
    publication: DeclaredPublication,
    report: PublicationReport,
    told: Sequence[tuple[int, datetime]],
    death: str | None,
    now: datetime,
) -> PublicationStatus:
    since = [committed_at for epoch, committed_at in told if epoch > report.looked]
    waits_since = report.later_since or (since[0] if since else None)
    error, behind = report.error or death, report.later + len(since)
    state: Literal["current", "behind", "held", "retrying", "failed"] = "current"
    if error is not None:
        state = "failed" if report.is_failed else "retrying"
    elif behind:
        state = "held" if report.is_held and not since else "behind"
    return PublicationStatus(
        view=publication.view,
        table=str(publication.target),
        epoch=report.epoch,
        behind_epochs=behind,
        behind_s=0.0 if waits_since is None else max(0.0, (now - waits_since).total_seconds()),
        commits=report.commits,
        rows=report.rows,
        failures=report.failures,
        error=error,
        state=state,
    )
