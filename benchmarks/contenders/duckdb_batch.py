"""DuckDB: one query over all files of a directory.

python -m benchmarks.contenders.duckdb_batch all DIRECTORY
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

_BEGUN = time.perf_counter()

import duckdb  # noqa: E402  (its import is part of its start)

from benchmarks.contenders.answer import Answer, Groups  # noqa: E402


def take_all(connection: duckdb.DuckDBPyConnection, files: Path) -> Groups:
    query = "SELECT user, count(*), sum(amount) FROM read_parquet(?) GROUP BY user"
    return connection.execute(query, [f"{files}/*.parquet"]).fetchall()  # type: ignore[no-any-return]


def main() -> None:
    directory = Path(sys.argv[2])
    connection = duckdb.connect()
    take_all(connection, directory / "warm")
    ready = time.perf_counter()
    groups = take_all(connection, directory / "cold")
    Answer(ready - _BEGUN, (time.perf_counter() - ready,), groups).print()


if __name__ == "__main__":
    main()
