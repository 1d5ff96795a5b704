from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.nexmark_events import SCHEMAS, SIDE_ROWS, Nexmark, write_files

START = datetime(2026, 3, 1, tzinfo=UTC)
NEXMARK = Nexmark(seed=1, start=START, gap_us=1_000)
KINDS = ("person", "auction", "bid")


def whole(count: int, step: int) -> dict[str, pa.Table]:
    """Events in parts of a size, put together."""
    parts = [NEXMARK.events(first, step) for first in range(0, count, step)]
    return {kind: pa.concat_tables(part[kind] for part in parts) for kind in KINDS}


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    events = NEXMARK.events(0, 5_000)
    assert {kind: events[kind].num_rows for kind in KINDS} == {"person": 100, "auction": 300, "bid": 4_600}
    assert {kind: rows.schema for kind, rows in events.items()} == {kind: SCHEMAS[kind] for kind in KINDS}
    assert sum(rows.num_rows for rows in NEXMARK.events(17, 333).values()) == 333


def test_ids_and_times_go_on_from_part_to_part() -> None:
    events = whole(6_000, 70)
    for kind in ("person", "auction"):
        assert events[kind]["id"].to_pylist() == [*range(1_000, 1_000 + events[kind].num_rows)]
    times = sorted(time for kind in KINDS for time in events[kind]["at"].to_pylist())
    assert times == [START + timedelta(milliseconds=number) for number in range(len(times))]
    assert pc.all(pc.greater(events["auction"]["expires"], events["auction"]["at"])).as_py()


def test_the_seed_decides() -> None:
    assert NEXMARK.events(50, 500) == NEXMARK.events(50, 500)
    assert NEXMARK.events(50, 500)["bid"] != replace(NEXMARK, seed=2).events(50, 500)["bid"]


def test_half_of_the_bids_are_for_hot_auctions_and_three_quarters_by_hot_bidders() -> None:
    bids = NEXMARK.events(500_000, 50_000)["bid"]
    hot_auctions = sum(each % 100 == 0 for each in bids["auction"].to_pylist()) / bids.num_rows
    hot_bidders = sum(each % 100 == 1 for each in bids["bidder"].to_pylist()) / bids.num_rows
    assert 0.48 < hot_auctions < 0.53
    assert 0.73 < hot_bidders < 0.78
    channels = Counter(bids["channel"].to_pylist())
    assert [each for each, _ in channels.most_common(4) if each.startswith("channel-")] == []


def test_files_have_the_events_of_their_part(tmp_path: Path) -> None:
    write_files(NEXMARK, tmp_path / "files", 3, 100)
    for kind in KINDS:
        read = [pq.read_table(path) for path in sorted((tmp_path / "files" / kind).iterdir())]
        assert read == [NEXMARK.events(first, 100)[kind] for first in (0, 100, 200)]
    assert pq.read_table(tmp_path / "files" / "side" / "0000.parquet").num_rows == SIDE_ROWS
