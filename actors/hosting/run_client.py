"""The process that runs a pipeline, as a client of the coordinator and the merger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, TypeVar

import pyarrow as pa
import ray
import structlog

from actors.hosting.actor_death import death_of
from actors.hosting.awaited_epoch import AwaitedEpoch
from actors.hosting.coordinator import Coordinator
from actors.hosting.ray_actors import control_options
from actors.hosting.ray_session import actor_options
from actors.protocol.barrier import Mutation
from actors.protocol.blocks import Block
from actors.protocol.reports import CollectReport, EpochBlocks
from actors.protocol.run_state import Recovered, RunState
from actors.recovery.attempt_plan import AttemptPlan
from actors.sources.pipeline_definition import (
    COORDINATOR,
    DISPATCHER,
    MATERIALIZER,
    MERGER,
    PipelineDefinition,
    name_actors,
)
from actors.sources.placement import without_room
from state.store.store import StateStore
from state.upkeep.vacuum import Vacuumed

_Answer = TypeVar("_Answer")
_ROOM_S = 15.0
_REFERENCE_FROM_BYTES = 1 << 20
"""A smaller block reaches Spark sooner without the object store of Ray."""
_log = structlog.get_logger(actor="run")


class RunClient:
    """Starts the coordinator and speaks to it.

    Args:
        plan: the results of the attempts before this one; the coordinator is named after its run and number.
    """

    def __init__(self, definition: PipelineDefinition, plan: AttemptPlan) -> None:
        name = f"slackwater-{plan.run}-{plan.number}"
        self._definition, self._plan = definition, plan
        options = control_options(definition.placement, near=ray.get_runtime_context().get_node_id())
        coordinator = ray.remote(Coordinator).options(name=name, **options, **actor_options())
        self._coordinator = coordinator.remote(definition, plan)
        self._merger: Any = None
        self._epoch = AwaitedEpoch(lambda: self._merger.take.remote().future())

    def start(self) -> Recovered:
        """Takes over the root, recovers, and lets the flow begin.  Errors as `actors.recovery.recovery.recover`."""
        start = self._coordinator.start.remote()
        while not ray.wait([start], timeout=_ROOM_S)[0]:
            self._warn_without_room()
        recovered: Recovered = _answer(lambda: ray.get(start))
        self._merger = recovered.merger
        return recovered

    def _warn_without_room(self) -> None:
        """Ray itself waits in silence for nodes with the resources of an actor."""
        definition = self._definition
        fetchers, _fewest, _most = self._plan.fetchers(definition.fetch)
        said = without_room(
            definition.placement,
            fetchers=fetchers,
            names=sum(len(name_actors(source)) for source in definition.sources),
            controls=len(definition.sources)
            + len((COORDINATOR,) if definition.shares_process else (COORDINATOR, DISPATCHER, MERGER)),
            nodes=[node["Resources"] for node in ray.nodes() if node["Alive"]],
        )
        if said:
            _log.warning(
                "no room in the Ray cluster: waiting for nodes, or ask for less in PlacementSettings", reason=said
            )

    def watch(self, last: RunState | None = None) -> RunState:
        """The run's state when it is newer than `last`, at the latest after a second."""
        version, epoch = (-1, 0) if last is None else (last.version, last.epoch)
        state: RunState = _answer(lambda: ray.get(self._coordinator.watch.remote(version, epoch)))
        return state if last is None else state.after(last)

    def request(self, mutation: Mutation) -> int:
        """Puts a mutation on the next barrier.  Returns its number, see `RunState.requests_over`."""
        number: int = _answer(lambda: ray.get(self._coordinator.request.remote(mutation)))
        return number

    def rescale(self, fewest: int, most: int) -> int:
        """Asks for another number of fetch actors.  Returns the number of that, see `RunState.rescalings_over`."""
        number: int = _answer(lambda: ray.get(self._coordinator.rescale.remote(fewest, most)))
        return number

    def mark(self, timeout_s: float | None) -> int | None:
        """Makes a mark: `RunState.reached_mark` comes to it when everything that is in the buckets now is committed.

        Args:
            timeout_s: the longest wait for the coordinator, which may be starting; None waits forever.

        Returns:
            The mark; None if it did not come in time.
        """
        try:
            mark: int = _answer(lambda: ray.get(self._coordinator.mark.remote(), timeout=timeout_s))
        except ray.exceptions.GetTimeoutError:
            return None
        return mark

    def change(self, action: Callable[[StateStore], _Answer]) -> _Answer:
        """Has the coordinator change the store between two commits.

        Args:
            action: a function of a module, with its arguments: Ray sends it to the process of the coordinator.

        Raises:
            SlackwaterError: the error of the action.
        """
        result: _Answer = _answer(lambda: ray.get(self._coordinator.change.remote(action)))
        return result

    def vacuum(self) -> Vacuumed:
        """Folds, expires and vacuums everything that can be, now."""
        vacuumed: Vacuumed = _answer(lambda: ray.get(self._coordinator.vacuum.remote()))
        return vacuumed

    def views_declared(
        self, *, sources: Set[str], new_views: bool, columns: Mapping[str, Sequence[str]], backfilling: bool
    ) -> None:
        """Every view that the schemas of these sources allow has been analysed, or views are further.

        Args:
            sources: the sources whose schema is decided.
            new_views: whether the next epoch has something to commit that comes with no row.
            columns: source → the columns that views use, as far as all views are known.
            backfilling: whether a view still lacks rows that were ingested before it was declared.
        """
        arguments = (frozenset(sources), new_views, dict(columns), backfilling)
        _answer(lambda: ray.get(self._coordinator.views_declared.remote(*arguments)))

    def put_block(self, source: str, table: pa.Table) -> Block:
        """A block with rows of this process, which owns them."""
        reference = table if table.nbytes < _REFERENCE_FROM_BYTES else _put(table)
        return Block(MATERIALIZER, source, reference, table.num_rows, table.nbytes, tuple(table.column_names))

    def next_epoch(self, timeout_s: float) -> EpochBlocks | None:
        """The next epoch for the materializer; None if none comes in that time, or before `wake`."""
        return _answer(lambda: self._epoch.within(timeout_s))

    def wake(self) -> None:
        """Ends the present or the next wait for an epoch."""
        self._epoch.wake()

    def collect(self, report: CollectReport) -> None:
        """The materializer has finished an epoch: its blocks are free, and it may be committed.

        Returns when both actors have taken that: no deadline runs for the materializer, so a lost report would leave
        the epoch open for ever.
        """
        taken = [self._merger.release.remote(report.epoch), self._coordinator.collect.remote(report)]
        _answer(lambda: ray.get(taken))

    def join(self) -> None:
        """Waits until a stopped run has finished its work after the last commit."""
        _answer(lambda: ray.get(self._coordinator.join.remote()))

    def close(self) -> None:
        """Ends the coordinator; the actors it owns end with it."""
        ray.kill(self._coordinator)


def _put(table: pa.Table) -> Any:
    """A reference to rows, in one batch: Spark takes a batch without rows for the end."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return ray.put(sink.getvalue().to_pybytes())


def _answer(call: Callable[[], _Answer]) -> _Answer:
    """The answer of a call, or the error that the actor raised, as it was raised there."""
    try:
        return call()
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayActorError as error:
        raise death_of(error).ending("the coordinator died") from error
