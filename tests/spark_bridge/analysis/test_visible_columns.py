"""The columns of its sources that a view knows."""

from __future__ import annotations

import pyarrow as pa

from spark_bridge.analysis.columns import visible_schemas
from state.tables.records import CatalogView

_LONGER = pa.schema([("a", pa.int64()), ("b", pa.string()), ("added", pa.int8())])


def test_a_view_sees_what_there_was_when_it_was_created() -> None:
    view = CatalogView("v", "append", "", "", ("s",), (), 1, visible={"s": ("a", "b")})
    assert visible_schemas({"s": _LONGER, "t": _LONGER, "u": None}, view) == {
        "s": pa.schema([("a", pa.int64()), ("b", pa.string())]),
        "t": _LONGER,
        "u": None,
    }


def test_a_new_view_and_one_that_was_kept_without_its_columns_see_everything() -> None:
    assert visible_schemas({"s": _LONGER}, None) == {"s": _LONGER}
    assert visible_schemas({"s": _LONGER}, CatalogView("v", "append", "", "", ("s",), (), 1)) == {"s": _LONGER}
