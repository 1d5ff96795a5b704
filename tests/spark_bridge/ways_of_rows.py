"""The ways that an epoch's rows take, which their number decides: tests with few rows go all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from spark_bridge.changes import memory_tier, parents
from spark_bridge.datasets import result_rows
from spark_bridge.engine.catalyst import arrow_frames
from spark_bridge.engine.execution import leaves
from spark_bridge.ingest import dataset_frame
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.operators.join import large_sides


@contextmanager
def as_if_many() -> Iterator[None]:
    """Passes few rows to Spark as it passes many: by a file, in plans made again, and in shuffles of many tasks."""
    with ExitStack() as ways:
        for owner, name, value in (
            (arrow_frames, "_BY_CALL_BYTES", 0),
            (leaves, "FEW_BYTES", -1),
            (dataset_frame, "FEW_BYTES", -1),
            (dataset_frame, "_SPAN_TASK_BYTES", 1),
            (EpochRows, "tasks", 3),
            (result_rows, "_STAGED_FROM_BYTES", 0),
            (parents, "_PARTITION_BYTES", 1),
            (large_sides, "MOST_HASHES", 3),
        ):
            ways.enter_context(patch.object(owner, name, value))
        yield


@contextmanager
def kept_at_once() -> Iterator[None]:
    """The sides of joins are in memory after the first look-up, in materializers that are made in the context."""
    with patch.object(memory_tier, "ThreadPoolExecutor", _AtOnce):
        yield


class _AtOnce(Executor):
    def __init__(self, *_: object, **__: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(work(*arguments, **options))
        return future
