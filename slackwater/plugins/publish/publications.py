"""The publications of a run, as the run sees them: a process beside it, and what it reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import structlog

from actors.protocol.run_state import RunState
from actors.telemetry.logging import redact
from slackwater.extensions.table_target import LAST_EPOCH_S, places_of
from slackwater.places.declared_place import DeclaredPlace
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication_loop import LONGEST_PAUSE_S, PublicationReport
from slackwater.plugins.publish.publication_states import PublicationStates
from slackwater.plugins.publish.publishing_process import MODULE, PublishingJob, publications_to_json
from slackwater.status.run_status import PublicationStatus
from state.clock import Clock
from state.location import Location

_DEATH_S = 5.0
_IMPORTED_FROM = str(Path(__file__).parents[3])
_log = structlog.get_logger(actor="run")


class Publications:
    """Hosts the process, sends it the epochs, starts it again when it dies, and stores its reports.

    The run waits for it only at its end.  It has a process of its own since the libraries of formats compute in Python
    and in memory: beside the loop of the views they would delay epochs.

    Args:
        root: the root of the run.
        publications: the views and their tables.
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
        self._states, self._is_over = PublicationStates(publications), False
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
            return self._states.statuses(self._clock.now())

    def add(self, publications: Sequence[DeclaredPublication]) -> None:
        """Publishes further views, or to further tables, from now on."""
        with self._news:
            self._job = replace(
                self._job,
                publications=(*self._job.publications, *publications),
                places=(*self._job.places, *(place.checked() for place in places_of(publications))),
            )
            self._states.add(publications)
            self._news.notify_all()

    def notify(self, state: RunState) -> None:
        """Takes a state of the run, and returns at once."""
        with self._news:
            if self._states.notify(state):
                self._news.notify_all()

    def begin_end(self) -> None:
        """No further epoch follows: the last epoch is being published."""
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
                self._states.end_in_time(timeout_s)

    def _host(self) -> None:
        """Keeps a process alive while there is something to publish."""
        deaths = 0
        while self._wait_for(lambda: self._states.epoch > 0, None):
            began_s = self._clock.monotonic()
            try:
                death = self._life()
            except OSError as error:
                death = f"the process that publishes cannot be started: {error}"
            with self._news:
                if self._is_over and death is not None:
                    self._states.end(death)
                else:
                    self._states.death = death
            if self._is_over:
                return
            _log.warning("the process that publishes has died; it starts again", error=death)
            deaths = 1 if self._clock.monotonic() - began_s > LONGEST_PAUSE_S else deaths + 1
            self._wait_for(lambda: self._is_over, min(LONGEST_PAUSE_S, 2.0 ** min(deaths, 16)))

    def _wait_for(self, condition: Callable[[], bool], timeout_s: float | None) -> bool:
        """True if the condition came true before the end of the run."""
        with self._news:
            self._news.wait_for(lambda: condition() or self._is_over, timeout_s)
            return bool(condition())

    def _life(self) -> str | None:
        """Starts the process, and sends it the epochs until the end of the run.

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
            return self._states.epoch > told or len(self._job.publications) > known or self._is_over or ended.is_set()

        while not ended.is_set():
            with self._news:
                self._news.wait_for(is_new)
                epoch, is_over, publications = self._states.epoch, self._is_over, self._job.publications
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
            if not line.endswith(b"\n"):
                break  # the process died while it wrote it
            report = PublicationReport.of_json(json.loads(line))
            with self._news:
                before = self._states.report(report)
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
