"""The contract of every format: the table equals the view at the epoch that it names, for every type and every change.

Two programs read each table: the library of its format, and DuckDB by the files that the log names.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.plugins.publish.publisher import opened_table
from state.clock import SystemClock
from state.location import Location
from state.tables.group_key import KEY_COLUMN, group_keys
from tests.slackwater.plugins.publish.every_type import row, table
from tests.slackwater.plugins.publish.growing_view import GrowingView
from tests.slackwater.plugins.publish.published import target_in
from tests.slackwater.plugins.publish.two_readers import FORMATS, require_equal_twice

KEY = ("carrier", "day")


class ChangingView:
    """A view with random rows and changes, and the rows that it must have.

    Args:
        directory: of the root and the table.
        random: of rows and changes.
        is_keyed: the rows are groups by `KEY`.
    """

    def __init__(self, directory: Path, random: Random, *, is_keyed: bool) -> None:
        self.view = GrowingView(Location(str(directory / "root")), *(KEY if is_keyed else ()))
        self._random, self._is_keyed = random, is_keyed
        self.view.create(self._rows(20))

    def change(self) -> None:
        """An epoch with one change, or without changes."""
        kind = self._random.choice(("write", "write", "write", "remove", "correct", "correct", "nothing", "empty"))
        present = self.view.store.snapshot().view("v").to_arrow()
        if kind == "nothing" or (kind == "empty" and self._random.random() < 0.7):
            self.view.commit()
        elif self._is_keyed:
            if kind in ("write", "correct"):
                self.view.table.upsert(self._rows(8))
            if kind != "write" and present.num_rows:
                count = present.num_rows if kind == "empty" else min(5, present.num_rows)
                self.view.table.delete(
                    _keys(present).take(pa.array(self._random.sample(range(present.num_rows), count)))
                )
            self.view.commit()
        elif kind == "write":
            self.view.table.append(self._rows(8))
            self.view.commit()
        else:
            condition = "true" if kind == "empty" else f"n = {self._random.choice((0, 1, -1))}"
            gone = [] if kind != "correct" else self._rows(6)
            self.view.correct(condition, gone or self._rows(0))

    def _rows(self, count: int) -> pa.Table:
        rows = [row(self._random) for _ in range(count)]
        if not self._is_keyed:
            return table([*rows, *rows[:1]])  # a row that the view has twice
        made = table(list({(each["carrier"], each["day"]): each for each in rows}.values()))
        return made.append_column(KEY_COLUMN, _keys(made))


def _keys(rows: pa.Table) -> pa.Array:
    return group_keys([rows[name].combine_chunks() for name in KEY])


@pytest.mark.parametrize(
    ("is_keyed", "epochs", "seed"),
    [
        pytest.param(True, 6, 1, id="groups"),
        pytest.param(False, 6, 2, id="rows"),
        pytest.param(True, 30, 1, id="groups-30", marks=pytest.mark.more),
        pytest.param(False, 30, 3, id="rows-30", marks=pytest.mark.more),
        pytest.param(True, 90, 4, id="groups-90", marks=pytest.mark.more),
    ],
)
@FORMATS
def test_a_table_equals_its_view_after_every_change(
    tmp_path: Path, format: str, is_keyed: bool, epochs: int, seed: int
) -> None:
    random = Random(seed)
    changing, target = ChangingView(tmp_path, random, is_keyed=is_keyed), target_in(tmp_path, format, keep_s=0)
    for number in range(epochs):
        if number == 0 or random.random() < 0.8:  # several epochs may pass between two publications
            published = sw.publish(changing.view.store, "v", target)
            assert published.is_whole == (number == 0)
            assert require_equal_twice(changing.view, tmp_path, format) == published.epoch
        if number % 5 == 4:
            opened_table(target, SystemClock()).maintain()
            require_equal_twice(changing.view, tmp_path, format)
        changing.change()
