"""Checks of the expectations that the catalog has, and of the tag `published` that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from state.tables.expectations import PUBLISHED, Expectation, Gate, ViewExpectations
from state.tables.records import EpochRecord, Head
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.memory.memory_disk import MemoryDataset
from tests.simulation.model_views.model_expectations import wrong_rows
from tests.simulation.promise_broken import PromiseBroken


class GateChecker:
    """Checks that rows are published only if they are right, or released.

    Attributes:
        gates: the states of the gate, one after the other.

    Args:
        datasets: path → dataset of a view.
    """

    def __init__(self, datasets: Mapping[str, MemoryDataset]) -> None:
        self._datasets = datasets
        self._head = Head(0, 0)
        self._wrong: dict[str, frozenset[object]] = {}
        self._accepted: Mapping[str, frozenset[object]] = {}
        self._accepted_at: dict[int, Mapping[str, frozenset[object]]] = {0: {}}
        self._expected: dict[str, Expectation] = {}
        self._releases = 0
        self.gates: list[Gate] = ["none"]

    def begin(self, tables: FileTables, head: Head, above: GateChecker) -> None:
        """Begins with the first version of the store of a branch, at an epoch of the root above it."""
        self._accepted = above._accepted_at[head.epoch]
        self._look(tables, head)
        self._head = head

    def on_asked(self) -> None:
        """A user asks for a release."""
        self._releases += 1

    def check(self, tables: FileTables, head: Head, record: EpochRecord | None) -> None:
        """Checks the next version of the store.

        Args:
            tables: its rows about files, and its catalog.
            head: its head.
            record: the epoch that it commits; None if it commits none.
        """
        before, gate_before, wrong_before, expected_before = self._head, self.gates[-1], self._wrong, self._expected
        self._look(tables, head)
        self._head = head
        if record is None and self._expected != expected_before:
            raise PromiseBroken("gate", "expectations change without an epoch")
        if record is not None:
            self._follow_accepted(before, head, wrong_before)
        for view, found in self._expected.items():
            self._check_accepted(view, found)
        self._check_tag(before, gate_before, is_epoch=record is not None)

    def check_expected(self, views: Iterable[str]) -> None:
        """Checks that the expectations of views are counted that a run has declared and shown, and caught up."""
        missing = [view for view in views if view in self._head.views and view not in self._expected]
        if missing:
            raise PromiseBroken("gate", f"caught up, and the expectations of {missing} are not counted")

    # -- inside ----------------------------------------------------------------------------------------------------

    def _look(self, tables: FileTables, head: Head) -> None:
        """Counts the wrong rows of each view with expectations, and checks that the catalog has these counts."""
        rows = [row for row in tables.catalog.values() if row["kind"] == "expectations"]
        views = {row["name"]: ViewExpectations.of_json(row["name"], row["definition"]) for row in rows}
        self._expected, self._wrong = {}, {}
        for view, expected in views.items():
            version = head.views.get(view)
            if version is None:
                raise PromiseBroken("gate", f"the catalog has expectations of {view}, and no rows")
            wrong = wrong_rows(self._datasets[version.path].rows(version.path, version.version))
            [found] = expected.expectations.values()
            if found.rows != len(wrong):
                raise PromiseBroken(
                    "gate", f"{len(wrong)} rows of {view} are wrong ({wrong}), {found.rows} are counted"
                )
            self._expected[view], self._wrong[view] = found, frozenset(wrong)
        holding = [self._expected[view] for view, each in views.items() if each.on_violation == "hold"]
        is_held = any(found.rows > found.accepted for found in holding)
        gate: Gate = "closed" if is_held else "open" if holding else "none"
        if gate != self.gates[-1]:
            self.gates.append(gate)

    def _follow_accepted(self, before: Head, head: Head, wrong_before: Mapping[str, frozenset[object]]) -> None:
        """Those of the accepted rows that are wrong still; with a release, those that were wrong before."""
        kept, released = dict[str, frozenset[object]](), dict[str, frozenset[object]]()
        for view, wrong in self._wrong.items():
            is_rebuilt = view not in before.views or before.views[view].path != head.views[view].path
            nothing = frozenset[object]()
            kept[view] = wrong & (nothing if is_rebuilt else self._accepted.get(view, nothing))
            released[view] = wrong & (nothing if is_rebuilt else wrong_before.get(view, nothing))
        is_release = any(self._expected[view].accepted > len(rows) for view, rows in kept.items())
        if is_release:
            if not self._releases:
                raise PromiseBroken("gate", f"wrong rows are accepted, and nobody has released them: {self._expected}")
            self._releases -= 1
        self._accepted = self._accepted_at[head.epoch] = released if is_release else kept

    def _check_accepted(self, view: str, found: Expectation) -> None:
        """Checks the number of accepted rows; a row that leaves from an unknown place counts as an accepted one."""
        accepted = self._accepted.get(view, frozenset())
        if found.accepted > len(accepted):
            raise PromiseBroken("gate", f"{found.accepted} rows of {view} are accepted, and {len(accepted)} should be")
        if found.accepted < len(accepted) and sum(found.waiting.values()) == found.rows - found.accepted:
            raise PromiseBroken("gate", f"{len(accepted)} rows of {view} were released: {found}")

    def _check_tag(self, before: Head, gate_before: Gate, *, is_epoch: bool) -> None:
        tag, wanted, gate = self._head.tags.get(PUBLISHED), before.tags.get(PUBLISHED), self.gates[-1]
        if is_epoch and gate == "none":
            wanted = None
        elif is_epoch and gate == "open":
            wanted = self._head.epoch
        elif is_epoch and gate_before != "closed":
            wanted = before.epoch or None
        if tag != wanted:
            raise PromiseBroken("gate", f"the tag {PUBLISHED} is at epoch {tag}, and should be at {wanted}")
