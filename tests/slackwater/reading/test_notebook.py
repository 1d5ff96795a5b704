"""Store, snapshot and view as a notebook shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from slackwater.reading.notebook import as_html
from slackwater.reading.store import open as open_store
from tests.slackwater.reading.written_root import WrittenRoot


def test_a_store_a_snapshot_and_a_view_are_tables(written: WrittenRoot) -> None:
    store = open_store(str(written.root))
    shown = store._repr_html_()
    assert f"latest epoch: {store.latest_epoch()}" in shown and "<td>by_carrier</td>" in shown
    snapshot = store.snapshot()
    assert "<td>by_carrier</td><td>3</td>" in snapshot._repr_html_()
    assert f"epoch={snapshot.epoch}" in snapshot._repr_html_() and "committed at 2" in snapshot._repr_html_()
    view = snapshot.view("by_carrier")._repr_html_()
    assert "<tr><td>o&#x27;hare|1</td><td>101</td></tr>" in view and "<td><i>null</i></td>" in view
    assert "__sw_" not in view and " rows</p>" not in view


def test_texts_are_escaped_and_every_type_has_a_form() -> None:
    rows = pa.table(
        {
            "<script>": ["<img src=x onerror=alert(1)>", "\x1b[31mred\u202e", None],
            "n": pa.array([1, None, 2**60], pa.int64()),
            "d": [Decimal("1.50"), None, None],
            "at": pa.array([datetime(2026, 1, 2, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
            "list": [[1, 2], None, []],
            "struct": [{"a": "<b>"}, None, {"a": None}],
        }
    )
    shown = as_html("View('<v>')", rows, "3 of 4 rows")
    assert "<script>" not in shown and "<img" not in shown and "<v>" not in shown and "\x1b" not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown and "\\x1b[31mred\\u202e" in shown
    for text in (
        "1152921504606846976",
        "1.50",
        "2026-01-02 00:00:00+00:00",
        "[1, 2]",
        "{&#x27;a&#x27;: &#x27;&lt;b&gt;&#x27;}",
        "<p>3 of 4 rows</p>",
    ):
        assert text in shown, text
