"""The events of one run of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import structlog

from actors.telemetry.text import first_line
from slackwater.plugins.lineage.datasets import LineageDataset
from slackwater.plugins.lineage.open_lineage import OpenLineage
from slackwater.reading.store import Store
from slackwater.status.run_status import PublicationStatus, RunStatus
from state.clock import Clock
from state.errors import EpochNotFoundError, StorageError, StoreNotFoundError

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent
    from openlineage.client.generated.base import JobFacet, RunFacet

PRODUCER = "urn:slackwater"
_INTEGRATION = "SLACKWATER"
_log = structlog.get_logger(actor="lineage")


@dataclass(frozen=True)
class _Job:
    """A job, with the datasets that it reads and writes.

    Args:
        name: the name of the job.
        kind: `VIEW` or `PUBLICATION`.
        version: changes with the rows of the output.
        query: the text of a view's query; empty if it has none.
        error: why the job has failed; None if it has not.
    """

    name: str
    kind: str
    inputs: tuple[LineageDataset, ...]
    output: LineageDataset
    version: int
    query: str = ""
    error: str | None = None


@dataclass
class _Begun:
    """A job whose run has begun.

    Args:
        job: as it was sent last.
        number: the number of its runs before, in this run of the pipeline.
    """

    job: _Job
    number: int


class RunLineage:
    """Makes the events of a run from its status and its store.

    Args:
        pipeline: the name of the pipeline.
        run: the identifier of the run.
        open_store: opens the store of the root.
    """

    def __init__(
        self, target: OpenLineage, pipeline: str, run: str, open_store: Callable[[], Store], clock: Clock
    ) -> None:
        self._target, self._pipeline, self._run = target, pipeline, run
        self._open_store, self._clock = open_store, clock
        self._store: Store | None = None
        self._has_begun = self._has_error = False
        self._begun: dict[str, _Begun] = {}
        self._failed: set[str] = set()
        self._runs: dict[str, int] = {}
        self._looked_s, self._epoch = float("-inf"), 0

    def look(self, status: RunStatus) -> list[RunEvent]:
        """The events since the last look."""
        events = self._beginning()
        if status.epoch != self._epoch and self._is_due(status):
            events += self._changes(status)
        return events

    def end(self, status: RunStatus, error: str | None) -> list[RunEvent]:
        """The last events of the run.

        Args:
            status: its last status.
            error: why it has failed; None if it has not.
        """
        events = self._beginning()
        if status.epoch:  # publications come after their epoch
            events += self._changes(status)
        last = "COMPLETE" if error is None else "FAIL"
        events += [self._event(last, each, error) for each in self._begun.values()]
        return [*events, self._of_pipeline(last, error)]

    def _is_due(self, status: RunStatus) -> bool:
        """True if a view has begun or failed, or the last look at the store was long ago."""
        told = dict.fromkeys(self._begun, False) | dict.fromkeys(self._failed, True)
        views = {name: view for name, view in status.views.items() if view.rows and name not in status.backfills}
        if any(told.get(self._job(name)) != (view.error is not None) for name, view in views.items()):
            return True
        return self._clock.monotonic() >= self._looked_s + self._target.every_s

    def _beginning(self) -> list[RunEvent]:
        """The first event, if it was not sent."""
        if self._has_begun:
            return []
        self._has_begun = True
        return [self._of_pipeline("START")]

    def _changes(self, status: RunStatus) -> list[RunEvent]:
        """The events since the last look at the store; none while it cannot be read, and the next look has them."""
        try:
            jobs = list(self._jobs(status))
        except StorageError as error:
            if not self._has_error:
                _log.warning("lineage waits for the root", error=first_line(error))
            self._has_error = True
            return []
        self._has_error = False
        self._looked_s, self._epoch = self._clock.monotonic(), status.epoch
        return list(self._told(jobs))

    def _jobs(self, status: RunStatus) -> Iterator[_Job]:
        """The jobs as of the last epoch."""
        try:
            self._store = self._store or self._open_store()
            snapshot = self._store.snapshot()
        except (EpochNotFoundError, StoreNotFoundError):
            return
        version = str(snapshot.epoch)
        schemas = self._store.ledger.source_schemas()
        sources = {
            row["name"]: LineageDataset.at(row["url"], schema=schemas.get(row["name"]))
            for row in self._store.ledger.sources().to_pylist()
        }
        views = {
            name: LineageDataset.at(self._store.root, name, schema=snapshot.view(name).schema, version=version)
            for name in snapshot.views
        }
        known = {**sources, **views}
        for row in self._store.views.table().to_pylist():
            name = row["name"]
            if name in views and (row["error"] is not None or not row["stopped"]):
                inputs = tuple(known[each] for each in row["reads"] if each in known)
                query, error = row["definition"], row["error"]
                yield _Job(self._job(name), "VIEW", inputs, views[name], row["version"], query, error)
        for each in status.publications:
            if each.epoch is not None and each.view in views:
                yield self._publication(each, each.epoch, views[each.view])

    def _publication(self, status: PublicationStatus, epoch: int, view: LineageDataset) -> _Job:
        kind, _, place = status.table.partition(":")
        table = LineageDataset.at(place, schema=view.schema, version=str(epoch))
        if kind == "iceberg" and "/" not in place:  # its name in a catalog, which chose the place
            table = LineageDataset("iceberg", place, view.schema, str(epoch))
        name = f"{self._job(status.view)}.{kind}.{place.rpartition('/')[2]}"
        return _Job(name, "PUBLICATION", (view,), table, epoch)

    def _told(self, jobs: Sequence[_Job]) -> Iterator[RunEvent]:
        """The events of jobs that begin, go on, fail and end."""
        for name in self._begun.keys() - {each.name for each in jobs}:
            yield self._event("COMPLETE", self._begun.pop(name))
        self._failed.intersection_update(each.name for each in jobs)
        for job in jobs:
            begun = self._begun.get(job.name)
            if job.error is not None:
                self._failed.add(job.name)
                if begun is not None:
                    yield self._event("FAIL", self._begun.pop(job.name), job.error)
            elif begun is None:
                self._failed.discard(job.name)
                number = self._runs[job.name] = self._runs.get(job.name, -1) + 1
                begun = self._begun[job.name] = _Begun(job, number)
                yield self._event("START", begun)
            elif job.version != begun.job.version:
                begun.job = job
                yield self._event("RUNNING", begun)

    def _job(self, view: str) -> str:
        return f"{self._pipeline}.{view}"

    def _identifier(self, job: str, number: int = 0) -> str:
        again = f"#{number}" if number else ""
        return str(uuid5(NAMESPACE_URL, f"{self._run}#{job}{again}"))

    def _of_pipeline(self, state: str, error: str | None = None) -> RunEvent:
        return self._made(state, self._pipeline, self._identifier(self._pipeline), _job_type("PIPELINE"), {}, error)

    def _event(self, state: str, begun: _Begun, error: str | None = None) -> RunEvent:
        from openlineage.client.facet_v2 import parent_run, sql_job

        job = begun.job
        facets = _job_type(job.kind)
        if job.query:
            facets["sql"] = sql_job.SQLJobFacet(job.query, dialect="spark")
        parent = parent_run.ParentRunFacet(
            parent_run.Run(self._identifier(self._pipeline)), parent_run.Job(self._target.namespace, self._pipeline)
        )
        run = self._identifier(job.name, begun.number)
        return self._made(state, job.name, run, facets, {"parent": parent}, error, job)

    def _made(
        self,
        state: str,
        name: str,
        run: str,
        job_facets: dict[str, JobFacet],
        run_facets: dict[str, RunFacet],
        error: str | None,
        job: _Job | None = None,
    ) -> RunEvent:
        from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
        from openlineage.client.facet_v2 import error_message_run

        if error is not None:
            run_facets = {**run_facets, "errorMessage": error_message_run.ErrorMessageRunFacet(error, "PYTHON")}
        return RunEvent(
            eventTime=self._clock.now().isoformat(),
            run=Run(run, facets=run_facets),
            job=Job(self._target.namespace, name, facets=job_facets),
            eventType=RunState[state],
            inputs=[each.as_input() for each in job.inputs] if job is not None else [],
            outputs=[job.output.as_output()] if job is not None else [],
            producer=PRODUCER,
        )


def _job_type(kind: str) -> dict[str, Any]:
    from openlineage.client.facet_v2 import job_type_job

    return {"jobType": job_type_job.JobTypeJobFacet("STREAMING", _INTEGRATION, kind)}
