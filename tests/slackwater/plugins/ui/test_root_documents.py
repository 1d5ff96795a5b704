"""Tests of the documents that the page shows: they agree with `slackwater status`."""

from __future__ import annotations

from pathlib import Path

from slackwater.plugins.ui.root_documents import RootDocuments
from slackwater.reading.store import Store
from slackwater.reading.watching.stored_status import stored_status
from state.location import Location
from tests.slackwater.reading.written_root import begin_root


def test_the_rows_of_a_replaced_file_do_not_count(tmp_path: Path) -> None:
    writer = begin_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))
    writer.finish("a.csv", size=1, status="replaced", rows_read=5, rows_bad=2)
    writer.finish("a.csv", size=2, rows_read=7, rows_bad=1)
    writer.commit(files=1, rows=6)
    store = Store(writer.root, writer.clock)
    [source] = RootDocuments(store, writer.clock).sources()["sources"]
    assert (source["rows"], source["rows_bad"]) == (6, 1)
    assert source["files"] == {"done": 1, "replaced": 1}
    assert source["rows"] == stored_status(store).sources["flights"].rows
