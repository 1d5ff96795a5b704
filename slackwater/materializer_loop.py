"""Takes epochs from the merger to Spark, in the process that holds the Spark session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from actors.messages import BarrierKind
from actors.reports import CollectReport, EpochBlocks
from actors.run_client import RunClient
from actors.run_state import Recovered
from actors.topology import MATERIALIZER
from spark_bridge.materializer import Materializer
from spark_bridge.view_definition import ViewDefinition
from state.errors import DefinitionChangedError
from state.location import Location

if TYPE_CHECKING:
    from spark_bridge.view_plan import ViewPlan

_POLL_S = 0.05


class MaterializerLoop:
    """A thread of its own: what it raises ends the run.

    Args:
        client: of the coordinator.
        root: where the views are.
        definitions: the declared views.
        spark: the session, as soon as it is up; until then epochs without rows pass.
        recovered: where the attempt begins.
        schemas: gives every source's schema as of now, None while it is not decided.
    """

    def __init__(
        self,
        *,
        client: RunClient,
        root: Location,
        definitions: Sequence[ViewDefinition],
        spark: Future[Any],
        recovered: Recovered,
        schemas: Callable[[], Mapping[str, pa.Schema | None]],
    ) -> None:
        self._client, self._root, self._definitions = client, root, definitions
        self._spark, self._recovered, self._schemas = spark, recovered, schemas
        self._materializer: Materializer | None = None
        self._known = dict(recovered.catalog_views)
        self._declared: Mapping[str, pa.Schema | None] | None = None
        self._ended = threading.Event()
        self.view_classes: Mapping[str, str] = {}
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="materializer", daemon=True)
        self._thread.start()

    def begin_end(self) -> None:
        """No further epoch is taken."""
        self._ended.set()

    def join(self) -> None:
        """Waits for the end of the thread, and with it of a Spark job that runs."""
        self._thread.join()
        if self._materializer is not None:
            self._materializer.close()

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                if self._spark.done() or not any(self._schemas().values()):
                    self._declare()
                epoch = self._client.next_epoch(_POLL_S)
                if epoch is None:
                    continue
                report = self._materialize(epoch)
                if report is None:
                    return
                self._client.collect(report)
                if epoch.barrier.is_stop:
                    return
                if self._materializer is not None:
                    self._materializer.tidy()
        except Exception as error:
            self.failure = error

    def _declare(self) -> None:
        """Analyses the views that the schemas decided so far allow, once for each set of schemas."""
        schemas = self._schemas()
        if schemas == self._declared:
            return
        decided = {name for name, schema in schemas.items() if schema is not None}
        new: tuple[str, ...] = ()
        columns: Mapping[str, tuple[str, ...]] = {}
        if decided:
            materializer = self._started()
            declaration = materializer.declare(self._definitions, schemas, self._known)
            new = declaration.new
            for name in new:
                self._check_new(declaration.plans[name])
            # A view that waits for a schema may use more of the others.
            columns = {} if declaration.waiting else materializer.columns()
            self.view_classes = {name: plan.view_class for name, plan in declaration.plans.items()}
        self._declared = schemas
        self._client.views_declared(sources=decided, new_views=bool(new), columns=columns)

    def _check_new(self, plan: ViewPlan) -> None:
        ingested = sorted(self._recovered.ingested.intersection(plan.sources))
        if ingested:
            raise DefinitionChangedError(
                f"view {plan.name} is new, but rows of {', '.join(ingested)} are already in {self._root}; "
                "declare it on a new root"
            )

    def _started(self) -> Materializer:
        if self._materializer is None:
            self._materializer = Materializer(self._spark.result(), self._root)
            self._materializer.open(self._recovered.views)
        return self._materializer

    def _materialize(self, epoch: EpochBlocks) -> CollectReport | None:
        """What became of an epoch; None if the run has ended before it could be."""
        if epoch.barrier.kind is BarrierKind.INITIAL or (self._materializer is None and not epoch.blocks):
            return CollectReport(MATERIALIZER, epoch.epoch)
        while not self._spark.done() or not self._is_known(epoch):
            if self._ended.wait(_POLL_S):
                return None
        self._declare()
        done = self._started().run_epoch(epoch.epoch, epoch.blocks)
        self._known |= {view.name: view for view in done.created}
        return CollectReport(MATERIALIZER, epoch.epoch, views=done.views, created=done.created)

    def _is_known(self, epoch: EpochBlocks) -> bool:
        """Whether this process has heard of every column that the epoch's rows have."""
        schemas = self._schemas()
        for source, blocks in epoch.blocks.items():
            schema = schemas[source]
            if schema is None or not {name for block in blocks for name in block.columns} <= {*schema.names}:
                return False
        return True
