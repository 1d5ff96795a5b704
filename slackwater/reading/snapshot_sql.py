"""SQL over the views of one epoch, computed by DuckDB in a worker process."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from importlib.util import find_spec

import psutil
import pyarrow as pa

from slackwater.confinement.program import Program
from slackwater.confinement.received_rows import received_table
from slackwater.confinement.worker_client import MemoryExceededError, TimeExceededError, confined_answer
from slackwater.status.quantities import human_bytes
from state.errors import UsageError
from state.location import Location
from state.tables.records import EpochRecord

QUERY = Program("slackwater.reading.query_worker")
DEFAULT_TIMEOUT_S = 300.0
DEFAULT_MEMORY_BYTES = min(4 << 30, psutil.virtual_memory().total // 2)


@dataclass(frozen=True)
class SnapshotQuery:
    """A query over a snapshot, for a worker.

    Args:
        record: the record of the epoch.
        max_memory_bytes: the largest memory of DuckDB, and the largest result; None for no limit.
    """

    text: str
    root: Location
    record: EpochRecord
    max_memory_bytes: int | None


def run_query(query: SnapshotQuery, timeout_s: float | None) -> pa.Table:
    """The result of one SELECT, see `Snapshot.sql`.

    Args:
        timeout_s: the longest time of the computation; None for no limit.

    Raises:
        UsageError: DuckDB is not installed or refuses the query, the query is not one SELECT, or exceeds a limit.
        EpochExpiredError, StorageError: a view or the ledger cannot be read.
        WorkerEndedError: the worker process has ended.
    """
    limit = query.max_memory_bytes
    if find_spec("duckdb") is None:
        raise UsageError("SQL over views needs DuckDB; pip install 'slackwater[verify]'")
    _require_limits(timeout_s=timeout_s, max_memory_bytes=limit)
    request = pickle.dumps(query)
    try:
        answer = confined_answer(QUERY, query.root.scheme, request, timeout_s=timeout_s, max_memory_bytes=limit)
    except TimeExceededError:
        raise UsageError(
            f"the query took more than {timeout_s:g} s: read less, or give it more time (timeout_s; --timeout)"
        ) from None
    except MemoryExceededError:
        raise too_large(limit) from None
    return received_table(answer)


def _require_limits(**limits: float | None) -> None:
    for name, value in limits.items():
        if value is not None and not value > 0:
            raise UsageError(f"{name}={value}: give a number above 0, or None for no limit")


def too_large(max_bytes: int | None) -> UsageError:
    """The error of a query that needs more memory than its limit."""
    limit = "there is" if max_bytes is None else human_bytes(max_bytes)
    return UsageError(
        f"the query needs more than {limit} of memory: group, filter or limit its rows, or give it more "
        "(max_memory_bytes; --max-memory-gib)"
    )
