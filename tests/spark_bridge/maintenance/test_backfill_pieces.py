"""Pieces of a backfill: how long they last, how long it rests after one, and their computation beside the epochs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from spark_bridge.changes.view import Computed
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.ingest.history import HistoryPiece
from spark_bridge.maintenance.backfills import Backfills
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.clock import ManualClock
from state.errors import ViewFailedError
from state.tables.records import ViewVersion
from tests.waiting import eventually

SCHEMA = pa.schema([("x", pa.int64())])
MIB = 1 << 20
EVERY = 100 * MIB


class Rows:
    """Stored rows; it notes the sizes of the pieces."""

    missing: tuple[str, ...] = ()

    def __init__(self, *, is_stored: bool) -> None:
        self.is_stored = is_stored
        self.taken: list[int] = []

    @property
    def fraction(self) -> float:
        return min(1.0, sum(self.taken) / EVERY)

    def take(self, nbytes: int) -> HistoryPiece | None:
        if sum(self.taken) >= EVERY:
            return None
        self.taken.append(nbytes)
        rows: Any = {"s": SimpleNamespace(num_rows=1_000)}
        return HistoryPiece(rows, nbytes, str(sum(self.taken)))

    def close(self) -> None:
        pass


class Dataset:
    """A view that takes a second to compute 10 MiB, and a second to merge 20 MiB."""

    computes_beside = True

    def __init__(self, clock: ManualClock, rows: Rows) -> None:
        self._clock, self._rows, self._version = clock, rows, 1
        self.fails, self.groups = False, 0

    def create(self, epoch: int, *_: object) -> ViewVersion:
        return ViewVersion("v", "views/v-2.lance", 1)

    def apply(self, rows: EpochRows) -> ViewVersion:
        return self.computed(rows).merge()

    def computed(self, _: EpochRows) -> Computed:
        if self.fails:
            raise ViewFailedError("v", "over rows", "too wet")
        nbytes = self._rows.taken[-1]
        self._clock.advance(nbytes / (10 * MIB))
        return Computed(partial(self._merged, nbytes), self.groups)

    def _merged(self, nbytes: int) -> ViewVersion:
        self._clock.advance(nbytes / (20 * MIB))
        self._version += 1
        return ViewVersion("v", "views/v-2.lance", self._version)


class Backfilled:
    """A backfill that its first epoch has created; computations wait at a gate."""

    def __init__(self, *, weight: float = 0.25, is_stored: bool = True) -> None:
        self.clock, self.rows, self.gate = ManualClock(), Rows(is_stored=is_stored), Event()
        self.gate.set()
        self.threads = ThreadPoolExecutor(1)
        self.dataset = Dataset(self.clock, self.rows)
        make: Any = lambda _: self.dataset  # noqa: E731
        spark: Any = None
        many = EpochRows({"s": LeafRows(None, lambda: spark)}, 0, 1, 0)
        self.backfills = Backfills(
            make, lambda *_: self.rows, lambda *_: many, self.clock, self.threads, weight, self._beside
        )
        nothing: Any = None
        columns = {"s": frozenset[str]()}
        self.plan = ViewPlan(
            "v", "append", ("s",), (), (), columns, SCHEMA, (), False, "v", "v", "", nothing, nothing, {}
        )
        self.declare()
        self.come_rows()

    def declare(self) -> None:
        self.backfills.declare({"v": ViewDefinition("v", "SELECT x FROM s")}, {"v": self.plan}, {}, {})

    def close(self) -> None:
        self.threads.shutdown()
        self.backfills.close()

    def come_rows(self) -> None:
        frames: Any = {"s": None}
        for work in self.backfills.work(2, EpochRows(frames, 0, 1, 0), {}).values():
            work()

    def take(self) -> bool | None:
        """Whether a piece was added; None if none is due."""
        due = self.backfills.next_due()
        return None if due is None else self.backfills.take_piece(due)

    def add(self) -> None:
        """Computes a piece and adds it."""
        assert self.take() is False
        eventually(lambda: self.backfills.next_due() is not None)
        assert self.take() is True

    def _beside(self, name: str, work: Callable[[], Any]) -> Any:
        assert self.gate.wait(30)
        return work()


@pytest.mark.parametrize(("weight", "rest_s"), [(0.25, 3 * 0.6), (0.5, 0.6)])
def test_a_backfill_rests_by_its_weight_while_rows_come(weight: float, rest_s: float) -> None:
    late = Backfilled(weight=weight)
    late.add()
    # 4 MiB: 0.4 s to compute them and 0.2 s to merge them.
    late.clock.advance(rest_s - 0.01)
    assert late.take() is None
    late.clock.advance(0.02)
    assert late.take() is False
    late.close()


def test_a_backfill_does_not_rest_when_no_rows_have_come_for_ten_seconds() -> None:
    late = Backfilled(weight=0.001)
    late.add()
    assert late.take() is None
    late.clock.advance(10)
    late.add()
    late.add()
    late.close()


def test_rows_of_files_are_added_between_epochs_and_rest_too() -> None:
    late = Backfilled(is_stored=False)
    assert [late.take(), late.take()] == [True, None]
    late.close()


def test_the_merge_of_a_piece_is_short_while_rows_come_and_a_piece_alone_is_large() -> None:
    late = Backfilled(weight=1)
    late.add()
    late.come_rows()
    late.add()
    assert late.rows.taken == [4 * MIB, 4 * MIB], "0.2 s of merging"
    late.clock.advance(10)
    late.add()
    assert late.rows.taken[2] == 32 * MIB, "not more than eight times as much"
    late.close()


@pytest.mark.parametrize(("groups", "mib"), [(250, 10), (251, 4)])
def test_few_groups_are_merged_in_larger_pieces(groups: int, mib: int) -> None:
    late = Backfilled(weight=1)
    late.dataset.groups = groups
    late.add()
    late.come_rows()
    late.add()
    assert late.rows.taken[1] == mib * MIB, "a second of computing, or 0.2 s of merging"
    late.close()


def test_the_progress_is_that_of_the_pieces_in_the_view() -> None:
    late = Backfilled()
    late.gate.clear()
    assert late.take() is False
    late.come_rows()
    assert late.take() is None, "it is computed"
    assert late.backfills.fractions == {"v": 0.0}
    assert late.backfills.recorded()["v.next"].noted["history"] is None
    late.gate.set()
    eventually(lambda: late.backfills.next_due() is not None)
    assert late.take() is True
    assert late.backfills.fractions == {"v": 0.04}
    assert late.backfills.recorded()["v.next"].noted["history"] == str(4 * MIB)
    late.close()


def test_a_piece_of_a_backfill_that_restarts_is_not_added() -> None:
    late = Backfilled(weight=1)
    late.gate.clear()
    assert late.take() is False
    late.backfills.restart(["s"])
    late.gate.set()
    assert late.take() is None, "no epoch has created it again"
    late.come_rows()
    late.rows.taken.clear()
    late.add()
    assert late.backfills.recorded()["v.next"].version == 2
    late.close()


def test_the_error_of_a_computation_is_raised_when_its_piece_is_due() -> None:
    late = Backfilled()
    late.dataset.fails = True
    assert late.take() is False
    eventually(lambda: late.backfills.next_due() is not None)
    with pytest.raises(ViewFailedError, match="too wet"):
        late.take()
    late.close()
