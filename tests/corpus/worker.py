"""A process that reads files with limits, one after the other: `python -m tests.corpus.worker ROLE CPU_S MEMORY_MIB`.

A line of the input is a job, and a line of the output its result, both JSON.  The role `ours` reads a file and keeps
its rows as Arrow's IPC file; `others` compares them with the rows of pyarrow or DuckDB.  The process ends when a file
exceeds a limit or kills it, and its caller starts another process.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from actors.file_errors import EmptyFile, UnreadableFile
from actors.formats.options import Avro, Csv, Json, Orc, Parquet, Text
from actors.formats.registry import reader_for
from actors.objects.object_store import ObjectStore
from actors.schemas.ddl import format_schema
from actors.schemas.safe_types import safe_schema
from state.errors import SchemaError
from state.location import Location
from tests.corpus.case import Format
from tests.corpus.readings import shown

FORMATS: dict[str, Format] = {
    "parquet": Parquet(),
    "parq": Parquet(),
    "avro": Avro(),
    "orc": Orc(),
    "csv": Csv(),
    "tsv": Csv(delimiter="\t"),
    "json": Json(),
    "jsonl": Json(),
    "ndjson": Json(),
    "txt": Text(),
    "log": Text(),
}
"""The format of a file by the end of its name."""
MIB = 1 << 20
_SPARE_S = 2
_SHOWN = 200


def read(job: dict[str, str]) -> dict[str, Any]:
    """Reads a file, and keeps its rows."""
    path, format = Path(job["path"]), FORMATS[job["format"]]
    found = ObjectStore(Location(str(path.parent))).find("corpus", path.name)
    if found is None:
        return {"status": "refused", "detail": "a listing does not show it"}
    file, reader = ObjectStore(Location(str(path.parent))).open(found), reader_for(format)
    rows, bad, reason = 0, 0, ""
    try:
        schema = safe_schema(reader.infer_schema(file))
        with pa.OSFile(job["kept"], "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for piece in reader.read(file, schema):
                piece.table.validate(full=True)
                writer.write_table(piece.table)
                rows, bad = rows + piece.table.num_rows, bad + len(piece.bad)
                reason = reason or next((f"row {each.row + 1}: {each.reason}" for each in piece.bad), "")
    except (EmptyFile, UnreadableFile, SchemaError) as error:
        return {"status": "refused", "detail": f"after {rows} rows: {error}" if rows else str(error)}
    if bad:
        return {"status": "bad records", "detail": f"{rows} rows and {bad} bad records; {reason}"}
    return {"status": "read", "detail": f"{rows} rows"}


def compare(job: dict[str, str]) -> dict[str, Any]:
    """Compares the kept rows of a file with the rows of another reader."""
    path, format = Path(job["path"]), FORMATS[job["format"]]
    with pa.memory_map(job["kept"]) as source, pa.ipc.open_file(source) as reader:
        mine = reader.read_all()
    try:
        engine, other = _other_rows(path, format, mine.schema)
    # An engine may raise any error; the file is then not compared.
    except Exception as error:
        text = " ".join(str(error).split())
        return {"status": "read", "detail": f"not compared: {type(error).__name__}: {text[:_SHOWN]}"}
    if other is None:
        return {"status": "read", "detail": "not compared: no other reader of this format"}
    difference = difference_of(mine, other)
    return {"status": "different" if difference else "equal", "detail": f"{engine}{difference and ': '}{difference}"}


def _other_rows(path: Path, format: Format, schema: pa.Schema) -> tuple[str, pa.Table | None]:
    match format:
        case Parquet():
            return "pyarrow", pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read()
        case Orc():
            return "pyarrow", pa.orc.ORCFile(path).read()
        case Csv():
            return "DuckDB", _duckdb(
                f"read_csv($path, header=true, delim='{format.delimiter}', all_varchar=true)", path
            )
        case Json():
            return "DuckDB", _duckdb("read_json($path)", path)
    return "", None


def _duckdb(source: str, path: Path) -> pa.Table:
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.execute(f"SELECT * FROM {source}", {"path": str(path)}).to_arrow_table()


def difference_of(mine: pa.Table, other: pa.Table) -> str:
    """The first difference in words; empty for equal rows.  Types may differ if the values can be cast."""
    if mine.num_columns != other.num_columns:
        return f"{mine.num_columns} columns {mine.column_names[:9]}, not {other.num_columns} {other.column_names[:9]}"
    if mine.num_rows != other.num_rows:
        return f"{mine.num_rows} rows, not {other.num_rows}"
    for number, field in enumerate(mine.schema):
        ours, theirs = mine.column(number), other.column(number)
        try:
            theirs = theirs.cast(field.type)
        except pa.ArrowException as error:
            return f"column {field.name}: {format_schema(pa.schema([field]))}, not {theirs.type}: {error}"
        if not ours.equals(theirs):
            for row, (one, another) in enumerate(zip(ours.to_pylist(), theirs.to_pylist(), strict=True)):
                if shown(one) != shown(another):
                    return f"column {field.name}, row {row + 1}: {shown(one)[:_SHOWN]}, not {shown(another)[:_SHOWN]}"
    return ""


def _result(work: Callable[[dict[str, str]], dict[str, Any]], job: dict[str, str]) -> dict[str, Any]:
    try:
        return work(job)
    except MemoryError:
        return {"status": "excess", "detail": "memory"}
    # An error that no reader documents ends a run, or a file that other rows depend on.
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return {
            "status": "crashed",
            "detail": f"{type(error).__name__}: {error} ({Path(at.filename).name}:{at.lineno})",
        }


def main() -> None:
    """Works on the jobs of the input."""
    work = {"ours": read, "others": compare}[sys.argv[1]]
    cpu_s, memory_mib = int(sys.argv[2]), int(sys.argv[3])
    # Logs and libraries print to standard output: the results keep it for themselves.
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Threads and libraries reserve address space before the first file.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    reserved = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (reserved + memory_mib * MIB, resource.RLIM_INFINITY))
    for line in sys.stdin:
        began_s = time.process_time()
        most_s = int(began_s) + cpu_s + _SPARE_S
        resource.setrlimit(resource.RLIMIT_CPU, (most_s, resource.RLIM_INFINITY))
        result = _result(work, json.loads(line))
        cpu = time.process_time() - began_s
        if cpu > cpu_s:
            result = {"status": "excess", "detail": f"{cpu:.1f} CPU seconds"}
        print(json.dumps({**result, "cpu_s": cpu}), file=results, flush=True)


if __name__ == "__main__":
    main()
