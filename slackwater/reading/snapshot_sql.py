"""SQL over the views of one epoch, computed by DuckDB in this process."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import psutil
import pyarrow as pa

from slackwater.reading.file_relation import FileRelation
from slackwater.reading.relation import Relation
from slackwater.reading.view_reader import ViewReader
from slackwater.reading.view_relation import ViewRelation
from slackwater.terminal.quantities import human_bytes
from state.errors import UsageError

DEFAULT_TIMEOUT_S = 300.0
DEFAULT_MEMORY_BYTES = min(4 << 30, psutil.virtual_memory().total // 2)
_ROWS_AT_ONCE = 10_000
_FILES = "files"
_LISTS_RELATIONS = re.compile(r"\b(show|information_schema|duckdb_\w+|pg_catalog|sqlite_master)\b", re.IGNORECASE)
Named = TypeVar("Named")
CONFINED = (
    # Without a directory DuckDB spills nothing; by default it would into the working directory.
    "SET temp_directory = ''; SET TimeZone = 'UTC'; SET autoinstall_known_extensions = false; "
    "SET enable_external_access = false; SET python_enable_replacements = false; SET lock_configuration = true"
)
"""The settings of a DuckDB that runs the SQL of others: no file, no network, and no other settings."""


def run_query(
    text: str,
    views: Mapping[str, ViewReader],
    files: FileRelation,
    place: str,
    *,
    timeout_s: float | None = DEFAULT_TIMEOUT_S,
    max_memory_bytes: int | None = DEFAULT_MEMORY_BYTES,
) -> pa.Table:
    """The result of one SELECT, see `Snapshot.sql`.

    Args:
        text: the query.
        views: the views that it may name.
        files: the ledger.
        place: the epoch and the root, for messages.
        timeout_s: the longest time that DuckDB computes.
        max_memory_bytes: the largest state of DuckDB, and the largest result.

    Raises:
        UsageError: DuckDB is not installed or refuses the query, the query is not one SELECT, or exceeds a limit.
        EpochExpiredError, StorageError: a view or the ledger cannot be read.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise UsageError("SQL over views needs DuckDB; pip install 'slackwater[verify]'") from None
    _require_limits(timeout_s=timeout_s, max_memory_bytes=max_memory_bytes)
    relations: list[Relation] = []
    with duckdb.connect() as connection, _interrupted_after(connection, timeout_s) as is_over:
        try:
            if max_memory_bytes is not None:
                connection.execute(f"SET memory_limit = '{max_memory_bytes // 1024}KiB'")
            connection.execute(CONFINED)
            kinds = [statement.type.name for statement in connection.extract_statements(text)]
            if kinds != ["SELECT"]:
                raise UsageError(f"SQL over views is one SELECT; given: {', '.join(kinds) or 'nothing'}")
            lists = _LISTS_RELATIONS.search(text) is not None
            for name, reader in named(text, views, every=lists).items():
                relations.append(ViewRelation(reader))
                connection.register(name, relations[-1])
            if (lists or _FILES in text.casefold()) and _FILES not in {name.casefold() for name in views}:
                relations.append(files)
                connection.register(_FILES, files)
            return _answer(connection.sql(text), max_memory_bytes)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            if is_over.is_set():
                raise UsageError(
                    f"the query took more than {timeout_s:g} s: read less, or give it more time (timeout_s; --timeout)"
                ) from None
            if isinstance(error, duckdb.OutOfMemoryException):
                raise _too_large(max_memory_bytes) from None
            failure = next((each.failure for each in relations if each.failure is not None), None)
            if failure is not None:
                raise failure from error
            raise UsageError(f"{_reason(error)}; the views at {place} are: {', '.join(views) or 'none'}") from None


def _require_limits(**limits: float | None) -> None:
    for name, value in limits.items():
        if value is not None and not value > 0:
            raise UsageError(f"{name}={value}: give a number above 0, or None for no limit")


@contextmanager
def _interrupted_after(connection: Any, timeout_s: float | None) -> Iterator[threading.Event]:
    """Interrupts the connection after a time; yields the event that says so."""
    is_over = threading.Event()

    def interrupt() -> None:
        is_over.set()
        connection.interrupt()

    timer = threading.Timer(timeout_s or 0, interrupt)
    if timeout_s is not None:
        timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()


def _answer(relation: Any, max_bytes: int | None) -> pa.Table:
    """The rows of a relation.

    Raises:
        UsageError: they are more than `max_bytes`.
    """
    # DuckDB 1 has only the older name.
    reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    batches: list[pa.RecordBatch] = []
    nbytes = 0
    rows = reader(_ROWS_AT_ONCE)
    for batch in rows:
        batches.append(batch)
        nbytes += batch.nbytes
        if max_bytes is not None and nbytes > max_bytes:
            raise _too_large(max_bytes)
    return pa.Table.from_batches(batches, rows.schema)


def _too_large(max_bytes: int | None) -> UsageError:
    limit = "there is" if max_bytes is None else human_bytes(max_bytes)
    return UsageError(
        f"the query needs more than {limit} of memory: group, filter or limit its rows, or give it more "
        "(max_memory_bytes; --max-memory-gib)"
    )


def named(text: str, views: Mapping[str, Named], *, every: bool = False) -> dict[str, Named]:
    """The views whose names occur in a query, or every one; only they are opened.

    Raises:
        UsageError: two of them differ only in case, which DuckDB ignores.
    """
    found = {name: reader for name, reader in views.items() if every or name.casefold() in text.casefold()}
    alike = {name.casefold(): name for name in found}
    for name in found:
        if alike[name.casefold()] != name:
            raise UsageError(
                f"SQL cannot tell view {name!r} from {alike[name.casefold()]!r}: read them with to_arrow()"
            )
    return found


def _reason(error: Exception) -> str:
    """An error of DuckDB in one line, without its drawing of the position."""
    return " ".join(str(error).partition("\n\nLINE ")[0].split())
