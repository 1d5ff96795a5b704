"""A file that is much larger than an epoch: barriers pass while it is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from tests.real.event_pipeline import FAST

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.usefixtures("session")]

ROWS = 1 << 20
COLUMNS = 8
QUERY = (
    "SELECT count(*) AS n, " + ", ".join(f"sum(c{column}) AS s{column}" for column in range(COLUMNS)) + " FROM large"
)


def write_large(path: Path, gib: int) -> int:
    """A Parquet file of random numbers; returns its rows."""
    rng = np.random.default_rng(1)
    schema = pa.schema([(f"c{column}", pa.float64()) for column in range(COLUMNS)])
    groups = gib * (1 << 30) // (8 * COLUMNS * ROWS)
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(groups):
            writer.write_table(pa.table([rng.random(ROWS) for _ in range(COLUMNS)], schema=schema))
    return groups * ROWS


def test_a_file_of_2_gib_holds_up_no_barrier_and_is_never_held_whole(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = write_large(tmp_path / "in" / "large.parquet", 2)
    pipeline = sw.Pipeline(
        "large", tmp_path / "root", settings=sw.Settings(fetch=sw.settings.FetchSettings(num_fetchers=1))
    )
    pipeline.source("large", tmp_path / "in", format="parquet", discovery=FAST)
    pipeline.view("sums", QUERY)
    highest = 0
    with pipeline.start() as run:
        while run.report().files < 1:
            run.wait(timeout_s=0.2)
            highest = max([highest, *(_own_memory(each) for each in psutil.Process().children(recursive=True))])
    store = sw.open(tmp_path / "root")
    epochs = store.epochs().to_pylist()
    assert store.snapshot().view("sums").to_arrow()["n"].to_pylist() == [rows]
    assert sum(1 for each in epochs if each["rows"]) > 4, "it is committed in parts"
    reading_s = (epochs[-1]["committed_at"] - epochs[0]["committed_at"]).total_seconds()
    assert max(each["align_s"] for each in epochs) < reading_s / 4, "no barrier waits for the file's end"
    assert highest < 1 << 30


def _own_memory(process: psutil.Process) -> int:
    """Of a fetch actor, without what it shares with the object store."""
    try:
        if not process.cmdline()[0].startswith("ray::FetchActor"):
            return 0
        memory = process.memory_info()
    except (psutil.Error, IndexError):
        return 0
    return int(memory.rss - memory.shared)
