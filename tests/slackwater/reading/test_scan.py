"""Groups that share the first values of their key, found by the index of the keys."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from slackwater.reading.view import View
from state.errors import UsageError
from state.lance import view_dataset
from state.location import Location
from state.tables.group_key import KEY_COLUMN, group_keys
from state.tables.records import ViewVersion

CARRIERS = [None, "", "A", "AA", "AA|", "AA|1", "A%", "A_", "AA\\", "\\N", "o'hare", "}", "é"]
DAYS = [None, 1, 11, 2]
RATIOS = [None, 0.0, math.nan]


def view_of(tmp_path: Path, columns: dict[str, pa.Array], key: tuple[str, ...]) -> View:
    table = pa.table({**columns, "n": list(range(len(columns[key[0]])))})
    table = table.append_column(KEY_COLUMN, group_keys([table[name] for name in key]))
    root = Location(str(tmp_path))
    view_dataset.create(root.child("views/v.lance"), table)
    return View(root, ViewVersion("v", "views/v.lance", 1), key)


def rows_of(table: pa.Table) -> set[str]:
    return {repr(row) for row in table.to_pylist()}


@pytest.mark.parametrize("indexed", [False, True])
def test_a_scan_finds_the_groups_that_begin_with_these_values_and_no_others(tmp_path: Path, indexed: bool) -> None:
    groups = [(carrier, day, ratio) for carrier in CARRIERS for day in DAYS for ratio in RATIOS]
    carriers, days, ratios = zip(*groups, strict=True)
    columns = {"carrier": pa.array(carriers), "day": pa.array(days, pa.int64()), "ratio": pa.array(ratios)}
    view = view_of(tmp_path, columns, ("carrier", "day", "ratio"))
    if indexed:
        view.lance().create_scalar_index(KEY_COLUMN, "BTREE")
        view = View(Location(str(tmp_path)), ViewVersion("v", "views/v.lance", 2), view.key)
    everything = view.to_arrow().to_pylist()
    for carrier in CARRIERS:
        expected = {repr(row) for row in everything if row["carrier"] == carrier}
        assert len(expected) == len(DAYS) * len(RATIOS)
        assert rows_of(view.scan(carrier=carrier)) == expected
        for day in DAYS:
            expected = {repr(row) for row in everything if (row["carrier"], row["day"]) == (carrier, day)}
            assert rows_of(view.scan(day=day, carrier=carrier)) == expected
    [nan] = view.scan(carrier="AA|", day=11, ratio=math.nan).to_pylist()
    assert (nan["carrier"], nan["day"]) == ("AA|", 11) and math.isnan(nan["ratio"])
    assert view.scan(carrier="ZZ").num_rows == 0
    assert view.scan(carrier="ZZ").schema == view.schema


def test_a_scan_asks_the_index(tmp_path: Path) -> None:
    carriers = pa.array([f"C{number % 100:02}" for number in range(20_000)])
    view = view_of(tmp_path, {"carrier": carriers, "day": pa.array(range(20_000))}, ("carrier", "day"))
    view.lance().create_scalar_index(KEY_COLUMN, "BTREE")
    view = View(Location(str(tmp_path)), ViewVersion("v", "views/v.lance", 2), view.key)
    assert view.scan(carrier="C07").num_rows == 200
    asked: list[str] = []
    dataset = view.lance()
    to_table = dataset.to_table

    def recorded(**arguments: Any) -> pa.Table:
        asked.append(dataset.scanner(**arguments).analyze_plan())
        return to_table(**arguments)

    dataset.to_table = recorded
    view.scan(carrier="C07")
    view.get(carrier="C07", day=7)
    for plan, rows in zip(asked, (200, 1), strict=True):
        assert "ScalarIndexQuery" in plan
        assert f"rows_scanned={rows}," in plan


def test_a_scan_that_cannot_work_says_what_would(tmp_path: Path) -> None:
    view = view_of(tmp_path, {"carrier": pa.array(["AA"]), "day": pa.array([1])}, ("carrier", "day"))
    for wrong in ({}, {"day": 1}, {"flight": 1}, {"carrier": "AA", "flight": 1}, {"carrier": "AA", "day": 1, "n": 0}):
        with pytest.raises(UsageError, match="first columns of its key, which is carrier, day; given: "):
            view.scan(**wrong)
    with pytest.raises(UsageError, match="day='x' is not a valid int64"):
        view.scan(carrier="AA", day="x")
    keyless = View(Location(str(tmp_path)), ViewVersion("v", "views/v.lance", 1), ())
    with pytest.raises(UsageError, match="'v' has no key"):
        keyless.scan(carrier="AA")
