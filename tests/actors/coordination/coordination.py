"""A `CoordinateExecutor` over a new root, and the answers of the other actors to its barriers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from actors.coordination.coordinate_executor import CoordinateExecutor
from actors.coordination.instructions import (
    Commit,
    CoordinateInstruction,
    Inject,
)
from actors.protocol.barrier import Barrier, FlowCommand, Mutation
from actors.protocol.instructions import ProposeSchema
from actors.protocol.reports import CollectReport
from actors.recovery.attempt_plan import AttemptPlan
from actors.recovery.recovery import recover
from state.clock import SystemClock
from state.lance.lance_root import LanceRoot
from state.tables.delta import DeltaBuilder
from state.tables.records import EpochCounts, EpochRecord, EpochSeconds, UnmatchedColumn
from tests.actors.flow import AT, of
from tests.actors.recovery.root_with_files import definition

X = pa.schema([("x", pa.int64())])


class Coordination:
    """The executor, the barriers that it injected, and the reports of all other actors."""

    def __init__(
        self,
        root: Path,
        schema: pa.Schema | None = X,
        files_at_once: int | None = None,
        flow: tuple[FlowCommand, ...] = (),
    ) -> None:
        made = definition(root, "s", schema=schema)
        plan = AttemptPlan("run", files_at_once=files_at_once, flow=flow)
        recovered = recover(made, plan, LanceRoot(made.root, SystemClock()))
        self.executor = CoordinateExecutor(
            definition=made, plan=plan, recovered=recovered, next_epoch=lambda last: last + 1, now_s=0.0
        )
        self.barriers = [each.barrier for each in of(Inject, self.executor.start(0.0))]

    def ask(self, mutation: Mutation) -> Barrier | None:
        return self._injected(self.executor.on_request(mutation, 0.0))

    def shows(self, path: str, schema: pa.Schema | None, sample: int) -> list[CoordinateInstruction]:
        return self.executor.on_schema_proposed(ProposeSchema("s", path, schema, sample), 0.0)

    def all_collect(
        self,
        barrier: Barrier,
        *,
        with_a_change: bool = False,
        unmatched: tuple[UnmatchedColumn, ...] = (),
        unfinished_since: Mapping[str, int] = {},
        complete_mark: int = 0,
    ) -> list[CoordinateInstruction]:
        delta = DeltaBuilder()
        if with_a_change:
            delta.put("list_state", b"s", 0, source="s")
        instructions: list[CoordinateInstruction] = []
        for actor in ("list-s", "dispatcher", "fetch-0", "fetch-1", "merger", "materializer"):
            told = unmatched if actor.startswith("fetch") else ()
            since = unfinished_since if actor == "fetch-1" else {}
            report = CollectReport(
                actor,
                barrier.epoch.prev,
                delta.build(),
                unmatched=told,
                unfinished_since=since,
                complete_mark=complete_mark if actor == "list-s" else 0,
            )
            instructions += self.executor.on_collect(report, 0.0)
        self._injected(instructions)
        return instructions

    def commits(self, commit: Commit, now_s: float = 0.0) -> None:
        record = EpochRecord(commit.epoch, 1, AT, 1, EpochCounts(), EpochSeconds(), {}, commit.trace)
        self._injected(self.executor.on_committed(record, now_s))

    def _injected(self, instructions: list[CoordinateInstruction]) -> Barrier | None:
        found = [each.barrier for each in of(Inject, instructions)]
        self.barriers += found
        return found[-1] if found else None

    @property
    def over(self) -> int:
        return self.executor.state.requests_over

    def ends(self, barrier: Barrier) -> None:
        """Ends the epoch, with a commit if it has changes."""
        for commit in of(Commit, self.all_collect(barrier)):
            self.commits(commit)
