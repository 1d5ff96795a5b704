"""The youngest of the files that an epoch finishes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from actors.coordination.epoch_times import youngest_files
from state.tables.delta import Delta, DeltaBuilder
from tests.slackwater.reading.written_root import START


def finished() -> Delta:
    """Two files of one source, one of another, and rows that do not count: quarantined, noted, removed."""
    builder = DeltaBuilder()
    for number, (source, age_s, status) in enumerate(
        [("s", 10, "done"), ("s", 5, "done"), ("t", 60, "done"), ("s", 1, "quarantined"), ("u", 1, "vanished")]
    ):
        modified = START - timedelta(seconds=age_s)
        fields = {"source": source, "path": f"{number}", "status": status, "last_modified": modified}
        builder.put("ledger", f"{number}".encode(), 1, **fields)
    builder.patch("ledger", b"9", 1, deleted_epoch=5)
    builder.delete("ledger", b"8", 1)
    return builder.build()


@pytest.mark.parametrize("as_arrow", [False, True])
def test_it_is_told_for_each_source_however_the_delta_is_held(as_arrow: bool) -> None:
    delta = finished()
    delta = Delta(delta.tables) if as_arrow else delta
    assert youngest_files(delta) == {"s": START - timedelta(seconds=5), "t": START - timedelta(seconds=60)}


def test_an_epoch_without_files_has_none() -> None:
    assert youngest_files(Delta()) == {}
    builder = DeltaBuilder()
    builder.put("list_state", b"s", 0, source="s")
    assert youngest_files(builder.build()) == {}
