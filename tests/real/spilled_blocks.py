"""A program of its own, since Ray has room here for a few blocks only: blocks that are spilled, or cannot be.

Prints one JSON object: the answers of the ingest about blocks with present and with deleted spill files, and the error
of a fetch actor without room for a block.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray

from actors.fetching.file_progress import FileProgress
from actors.fetching.instructions import EmitBlock
from actors.fetching.read_buffers import Piece
from actors.files import FileVersion
from actors.hosting.fetch_actor import FetchActor
from actors.hosting.ray_blocks import RayBlocks
from actors.protocol.blocks import Block
from actors.rows import Rows
from spark_bridge.ingest import blocks as ingest_blocks
from state.errors import RunFailedError, StorageFullError
from state.location import Location

_MIB = 1 << 20


class Reader:
    """As a fetch actor: it owns what it has read."""

    def put(self, blocks: int, nbytes: int = 8 * _MIB) -> list[Any]:
        self.references = [ray.put(os.urandom(nbytes)) for _ in range(blocks)]
        return self.references


class Fetcher(FetchActor):
    """Only what emits a block."""

    def __init__(self) -> None:
        self._used: dict[str, frozenset[str]] = {}
        self._blocks = RayBlocks("fetch-0", Location("unused"), {})
        self._sent: list[Any] = []

    def send(self, message: Any, to: Iterable[str] | None = None) -> None:
        self._sent.append(message)

    def emit(self, blocks: int) -> str:
        """What becomes of blocks that nobody releases."""
        rows = pa.table({"x": pa.array([os.urandom(_MIB) for _ in range(8)])})
        file = FileVersion("t", "a", b"12345678", "etag", rows.nbytes, datetime(2026, 1, 1, tzinfo=UTC))
        piece = Piece(FileProgress(file, listed_epoch=1), Rows(rows, 0))
        try:
            for _ in range(blocks):
                self._emit(EmitBlock("t", (piece,), rows.nbytes, epoch=1))
        except StorageFullError as error:
            return f"StorageFullError: {error}"
        return f"sent {len(self._sent)}"


def start_ray(spill_directory: str, **system: Any) -> None:
    """With room for nine blocks."""
    ray.init(
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        object_store_memory=80 * _MIB,
        object_spilling_directory=spill_directory,
        _system_config=system,
    )


def handed_over(references: list[Any]) -> str:
    """What becomes of the blocks; there is no Spark here, which only the check before it does not miss."""
    blocks = [Block("test", "t", each, rows=1, nbytes=8 * _MIB) for each in references]
    try:
        ingest_blocks.rows_of_blocks(None, pa.schema([("x", pa.int64())]), blocks)
    except RunFailedError as error:
        return f"RunFailedError: {error}"
    except AttributeError as error:
        return "handed to Spark" if "NoneType" in str(error) else str(error)
    return "ran"


def asked_often(readers: list[Any]) -> int:
    """How often Ray was asked about the blocks of two owners; it aborts this process when they are asked together."""
    blocks = [
        Block(f"reader-{number}", "t", each, rows=1, nbytes=1)
        for number, reader in enumerate(readers)
        for each in ray.get(reader.put.remote(600, 1))
    ]
    for _ in range(1_000):
        ingest_blocks._check_spilled(blocks)
    return 1_000


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        start_ray(directory)
        ingest_blocks._RESTORE_WITHIN_S = 5.0
        reader = ray.remote(num_cpus=0)(Reader).remote()
        references = ray.get(reader.put.remote(20))
        present = handed_over(references)
        files = [path for path in Path(directory).rglob("*") if path.is_file()]
        for path in files:
            path.unlink()
        answer = {"spilled": len(files), "present": present, "gone": handed_over(references)}
        answer["asked"] = asked_often([reader, ray.remote(num_cpus=0)(Reader).remote()])
        ray.shutdown()
        # Ray takes every disk for full.
        start_ray(directory, local_fs_capacity_threshold=1e-6, local_fs_monitor_interval_ms=100)
        answer["full"] = ray.get(ray.remote(num_cpus=0)(Fetcher).remote().emit.remote(20))
        ray.shutdown()
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
