"""The process that runs a pipeline, as a client of the coordinator and the merger."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, TypeVar

import pyarrow as pa
import ray

from actors.attempt_plan import AttemptPlan
from actors.coordinator import Coordinator
from actors.messages import Mutation
from actors.pipeline_definition import PipelineDefinition
from actors.reports import CollectReport, EpochBlocks
from actors.run_state import Recovered, RunState
from state.errors import RunFailedError
from state.vacuum import Vacuumed

_Answer = TypeVar("_Answer")


def connect_ray(*, address: str | None, num_cpus: int, namespace: str) -> bool:
    """Connects this process to Ray, by starting a local one if there is no address.

    Returns:
        Whether the connection is new, so that whoever asked for it must `disconnect_ray`.
    """
    if ray.is_initialized():
        return False
    options: dict[str, Any] = {"namespace": namespace, "log_to_driver": False, "logging_level": "error"}
    if address is not None:
        ray.init(address=address, **options)
    else:
        ray.init(num_cpus=max(num_cpus, os.cpu_count() or 1), include_dashboard=False, **options)
    return True


def disconnect_ray() -> None:
    """Ends the connection, and Ray itself if it was started for it."""
    ray.shutdown()


class RunClient:
    """Starts the coordinator and speaks to it.

    Args:
        definition: the pipeline.
        plan: what the attempts before this one left; the coordinator is named after its run and number.
    """

    def __init__(self, definition: PipelineDefinition, plan: AttemptPlan) -> None:
        name = f"slackwater-{plan.run}-{plan.number}"
        options = ray.remote(Coordinator).options(name=name, num_cpus=0, max_restarts=0, max_concurrency=1000)
        self._coordinator = options.remote(definition, plan)
        self._merger: Any = None
        self._next: Any = None

    def start(self) -> Recovered:
        """Takes over the root, recovers, and lets the flow begin.  Errors as `actors.recovery.recover`."""
        recovered: Recovered = _answer(lambda: ray.get(self._coordinator.start.remote()))
        self._merger = recovered.merger
        return recovered

    def watch(self, version: int) -> RunState:
        """The run's state when it is newer than `version`, at the latest after a second."""
        state: RunState = _answer(lambda: ray.get(self._coordinator.watch.remote(version)))
        return state

    def request(self, mutation: Mutation) -> int:
        """Puts a mutation on the next barrier.  Returns its number, see `RunState.requests_over`."""
        number: int = _answer(lambda: ray.get(self._coordinator.request.remote(mutation)))
        return number

    def rescale(self, fewest: int, most: int) -> int:
        """Asks for another number of fetch actors.  Returns the number of that, see `RunState.rescalings_over`."""
        number: int = _answer(lambda: ray.get(self._coordinator.rescale.remote(fewest, most)))
        return number

    def mark(self) -> int:
        """Makes a mark: `RunState.reached_mark` comes to it when what is in the buckets now is committed."""
        mark: int = _answer(lambda: ray.get(self._coordinator.mark.remote()))
        return mark

    def put_tag(self, name: str, epoch: int) -> None:
        """Gives an epoch a name.  Errors as `state.tags.put_tag`."""
        _answer(lambda: ray.get(self._coordinator.put_tag.remote(name, epoch)))

    def delete_tag(self, name: str) -> None:
        """Takes a name away.  Errors as `state.tags.delete_tag`."""
        _answer(lambda: ray.get(self._coordinator.delete_tag.remote(name)))

    def clear_quarantine(self, source: str | None, epoch: int) -> int:
        """Forgets bad records.  Errors as `state.quarantine.clear_quarantine`."""
        cleared: int = _answer(lambda: ray.get(self._coordinator.clear_quarantine.remote(source, epoch)))
        return cleared

    def vacuum(self) -> Vacuumed:
        """Folds, expires and vacuums whatever can be, now."""
        gone: Vacuumed = _answer(lambda: ray.get(self._coordinator.vacuum.remote()))
        return gone

    def views_declared(
        self, *, sources: Set[str], new_views: bool, columns: Mapping[str, Sequence[str]], catching_up: bool
    ) -> None:
        """Every view that the schemas of these sources allow has been analysed, or views are further.

        Args:
            sources: those whose schema is decided.
            new_views: whether the next epoch has something to commit that comes with no row.
            columns: source → the columns that views use, as far as that is known of all views.
            catching_up: whether a view still lacks rows that were ingested before it was declared.
        """
        arguments = (frozenset(sources), new_views, dict(columns), catching_up)
        _answer(lambda: ray.get(self._coordinator.views_declared.remote(*arguments)))

    def put(self, table: pa.Table) -> Any:
        """A reference to rows, for a `Block`; this process owns it."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return ray.put(sink.getvalue().to_pybytes())

    def next_epoch(self, timeout_s: float) -> EpochBlocks | None:
        """The next epoch for the materializer, or None if there is none in that time."""
        if self._next is None:
            self._next = self._merger.take.remote()
        ready, _ = ray.wait([self._next], timeout=timeout_s)
        if not ready:
            return None
        epoch: EpochBlocks = _answer(lambda: ray.get(self._next))
        self._next = None
        return epoch

    def collect(self, report: CollectReport) -> None:
        """The materializer has finished an epoch: its blocks are free, and it may be committed."""
        self._merger.release.options(num_returns=0).remote(report.epoch)
        self._coordinator.collect.options(num_returns=0).remote(report)

    def join(self) -> None:
        """Waits until a stopped run has finished what it does after its last commit."""
        _answer(lambda: ray.get(self._coordinator.join.remote()))

    def close(self) -> None:
        """Ends the coordinator; the actors it owns end with it."""
        self._next = None
        ray.kill(self._coordinator)


def _answer(call: Callable[[], _Answer]) -> _Answer:
    """The answer of a call, or the error that the actor raised, as it was raised there."""
    try:
        return call()
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayActorError as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise RunFailedError(f"the coordinator died: {reason}") from error
