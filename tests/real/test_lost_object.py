"""Rows of an epoch vanish from Ray's object store before Spark has read them: the run recovers once, and is exact."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import ray
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from actors.protocol.blocks import Block
from spark_bridge.ingest import blocks as ingest_blocks
from spark_bridge.ingest import row_ingest
from tests.real.event_pipeline import FAST, TOTALS, check_every_epoch
from tests.real.events import events, parquet, write
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.long]

IN_BLOCKS = sw.Settings(
    fetch=sw.settings.FetchSettings(
        num_fetchers=1, piece_bytes=8 * 1024, requests=sw.settings.RequestSettings(whole_object_bytes=64 * 1024)
    ),
    recovery=sw.settings.RecoverySettings(first_pause_s=1.0),
)
"""An epoch has several blocks."""


class Owner:
    """Puts an object, and takes it away by its death."""

    def put(self, content: bytes) -> list[Any]:
        return [ray.put(content)]


def is_gone(reference: Any) -> bool:
    """Whether this process cannot read an object any more."""
    try:
        ray.get(reference)
    except ray.exceptions.ObjectLostError:
        return True
    return False


def lost(block: Block, nbytes: int) -> Block:
    """The same rows, in an object whose owner has died."""
    owner = ray.remote(num_cpus=0)(Owner).remote()
    [reference] = ray.get(owner.put.remote(ray.get(block.ref)))
    ray.kill(owner)
    eventually(lambda: is_gone(reference))
    return replace(block, ref=reference, nbytes=nbytes)


@pytest.mark.usefixtures("session")
def test_an_epoch_whose_rows_are_lost_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones are read by the run itself, and large ones by Spark's executor, inside a task."""
    due: list[int] = []

    def with_losses(spark: SparkSession, schema: pa.Schema, blocks: Sequence[Block]) -> DataFrame:
        if due and len(blocks) > 1:
            blocks = [lost(blocks[0], nbytes=due.pop()), *blocks[1:]]
        return ingest_blocks.rows_of_blocks(spark, schema, blocks)

    (tmp_path / "in").mkdir()
    monkeypatch.setattr(row_ingest, "rows_of_blocks", with_losses)
    pipeline = sw.Pipeline("events", tmp_path / "root", settings=IN_BLOCKS)
    pipeline.source("events", tmp_path / "in", format="parquet", discovery=FAST)
    pipeline.view("totals", TOTALS)
    pipeline.view("touchy", "SELECT amount FROM events")
    said: list[str] = []
    with pipeline.start() as run:
        for nbytes in (0, sys.maxsize):
            due.append(nbytes)
            name = f"{nbytes}.parquet"
            write(tmp_path / "in", name, parquet(events(nbytes % 10_000, 5_000), row_group_size=500))
            eventually(lambda: run.status().phase == "recovering")
            said.append(run.status().message)
            assert run.wait(until="caught_up", timeout_s=60)
        report = run.stop()
    assert not due and (report.recoveries, report.files, report.rows) == (2, 2, 10_000)
    for message, reader in zip(said, ("source 'events'", "view 't"), strict=True):
        assert message.startswith(reader)
        assert (
            "rows of an epoch are lost, because the actor that had read them died; the run continues from the"
            in message
        )
    check_every_epoch(tmp_path / "root", tmp_path)


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    """What the program says."""
    program = [sys.executable, "-m", "tests.real.spilled_blocks"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr[-4000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def test_a_block_whose_spill_file_is_gone_is_a_loss_and_no_wait_for_ever(answer: dict[str, Any]) -> None:
    assert answer["spilled"] > 1, "Ray has spilled, or the test says nothing"
    assert answer["present"] == "handed to Spark"
    assert answer["gone"].startswith("RunFailedError: source 't': rows of an epoch are lost, because Ray had spilled ")
    assert "Ray's temporary directory" in answer["gone"]


def test_owners_are_asked_one_after_the_other(answer: dict[str, Any]) -> None:
    assert answer["asked"] == 1_000, "Ray would have ended the program"


def test_a_disk_without_room_for_spilled_blocks_is_no_fault_of_a_file(answer: dict[str, Any]) -> None:
    assert answer["full"].startswith("StorageFullError: fetch-0: Ray's object store is full, and so is the disk")
