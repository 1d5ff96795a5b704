"""A view that resumes has a copy of its rows at its last epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_bridge.datasets.view_table import ViewTable
from spark_bridge.maintenance import append_view
from spark_bridge.maintenance.append_view import AppendView
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import ViewVersion
from tests.spark_bridge.maintenance.scripted_views import SCHEMA, plan_of


@pytest.mark.parametrize("rows", [0, 3, 25_000])
@pytest.mark.parametrize("nbytes", [1, 1 << 20])
def test_a_view_copies_the_rows_of_its_last_version(
    tmp_path: Path, rows: int, nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append_view, "_COPIED_AT_ONCE_BYTES", nbytes)
    root, catalyst = Location(str(tmp_path)), _no_catalyst()
    stored = ViewTable.create(root.child("views/a-1.lance"), pa.table({"x": range(rows)}, schema=SCHEMA))
    version = ViewVersion("a", "views/a-1.lance", stored.version)
    stored.append(pa.table({"x": [7]}, schema=SCHEMA))  # of an epoch that no record names
    view = AppendView(catalyst, root, plan_of("a", "append"))
    copied = view.take_over(5, plan_of("a", "append"), version)
    assert copied.path == "views/a-5.lance" and view.num_rows == rows
    table = open_dataset(root.child(copied.path), copied.version).to_table()
    assert table.column("x").to_pylist() == [*range(rows)]


def _no_catalyst() -> Any:
    """The copy needs no plan."""
    return None
