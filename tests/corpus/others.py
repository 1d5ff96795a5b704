"""What DuckDB, pyarrow and Spark make of the same bytes, with the options that come nearest to ours.

Each engine reads with its defaults otherwise.  A refusal is the name of its error: its text changes from release to
release.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet as pq
from py4j.protocol import Py4JError, Py4JJavaError

from actors.formats.options import Csv, Json, Orc, Parquet, Text
from actors.schemas.ddl import format_schema
from tests.corpus.case import Case, Lines
from tests.corpus.cases import CASES
from tests.corpus.readings import rows_text, schema_text
from tests.repository import REPOSITORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NONE: Lines = ("no reader",)


class NoSuchOption(Exception):
    """The engine has no option for this kind of file."""


def _rest(options: Mapping[str, Any]) -> None:
    if options:
        raise NoSuchOption(", ".join(options))


def _lines(read: Callable[[], Lines]) -> Lines:
    try:
        return read()
    except NoSuchOption as error:
        return (f"no such option: {error}",)
    except (Py4JError, ConnectionError) as error:
        if isinstance(error, Py4JJavaError):
            return (f"refused: {type(error).__name__}",)
        # The JVM has ended, and so does the process that reads with it.
        os.kill(os.getpid(), signal.SIGABRT)
        raise
    # An engine may raise any error, also from C++ and Java.
    except Exception as error:
        return (f"refused: {type(error).__name__}",)


def _of_table(table: pa.Table) -> Lines:
    columns = [column.to_pylist(maps_as_pydicts="lossy") for column in table.columns]
    rows = [dict(enumerate(row)) for row in zip(*columns, strict=True)]
    return (schema_text(table.schema), *rows_text(rows))  # type: ignore[arg-type]


def by_pyarrow(case: Case, directory: Path) -> Lines:
    """What pyarrow reads."""
    path = directory / case.file_name
    path.write_bytes(case.bytes)
    match case.format:
        case Parquet():
            return _lines(lambda: _of_table(pq.ParquetFile(path).read()))
        case Orc():
            return _lines(lambda: _of_table(pa.orc.ORCFile(path).read()))
        case Csv():
            return _lines(lambda: _of_table(_pyarrow_csv(case, path)))
        case Json():
            return _lines(lambda: _of_table(_pyarrow_json(case, path)))
    return NONE


def _pyarrow_csv(case: Case, path: Path) -> pa.Table:
    options, schema = case.options, case.declared
    convert: dict[str, Any] = {"column_types": schema} if schema is not None else {}
    read: dict[str, Any] = {"skip_rows": options.pop("skip_rows", 0), "encoding": options.pop("encoding", "utf8")}
    if not options.pop("header", True):
        read |= {"column_names": schema.names} if schema is not None else {"autogenerate_column_names": True}
    parse: dict[str, Any] = {"newlines_in_values": True, "delimiter": options.pop("delimiter", ",")}
    if "quote" in options:
        parse["quote_char"] = options.pop("quote") or False
    if "escape" in options:
        parse["escape_char"] = options.pop("escape")
    if "null_values" in options:
        convert |= {
            "null_values": list(options.pop("null_values")),
            "strings_can_be_null": True,
            "quoted_strings_can_be_null": False,
        }
    for name in ("true_values", "false_values"):
        if name in options:
            convert[name] = list(options.pop(name))
    if "decimal" in options:
        convert["decimal_point"] = options.pop("decimal")
    if "timestamp_format" in options:
        convert["timestamp_parsers"] = [options.pop("timestamp_format")]
    _rest(options)
    return pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(**read),
        parse_options=pa.csv.ParseOptions(**parse),
        convert_options=pa.csv.ConvertOptions(**convert),
    )


def _pyarrow_json(case: Case, path: Path) -> pa.Table:
    _rest(case.options)
    parse = pa.json.ParseOptions(newlines_in_values=case.over_lines, explicit_schema=case.declared)
    return pa.json.read_json(path, parse_options=parse)


def by_duckdb(case: Case, directory: Path) -> Lines:
    """What DuckDB reads."""
    path = directory / case.file_name
    path.write_bytes(case.bytes)
    with duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    ) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        match case.format:
            case Parquet():
                return _lines(lambda: _duckdb_rows(connection, f"read_parquet('{path}')"))
            case Csv():
                return _lines(lambda: _duckdb_rows(connection, _duckdb_csv(case, path)))
            case Json():
                return _lines(lambda: _duckdb_rows(connection, _duckdb_json(case, path)))
    return NONE


def _duckdb_rows(connection: Any, source: str) -> Lines:
    return _of_table(connection.sql(f"SELECT * FROM {source}").to_arrow_table())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    return "'{}'".format((value or "").replace("'", "''"))


_DUCKDB_OPTIONS = {
    "header": "header",
    "delimiter": "delim",
    "quote": "quote",
    "escape": "escape",
    "skip_rows": "skip",
    "comment": "comment",
    "null_values": "nullstr",
    "decimal": "decimal_separator",
    "thousands": "thousands",
    "date_format": "dateformat",
    "timestamp_format": "timestampformat",
    "encoding": "encoding",
}


def _duckdb_types(case: Case) -> str:
    columns = [
        each.partition(" ") for each in (format_schema(case.declared) if case.declared else "").split(", ") if each
    ]
    return ", ".join(f"'{name}': '{_duckdb_type(kind)}'" for name, _, kind in columns)


def _duckdb_type(kind: str) -> str:
    for ours, theirs in (("timestamp_ntz", "datetime"), ("timestamp", "timestamptz"), ("string", "varchar")):
        kind = kind.replace(ours, theirs)
    return kind.replace("map<", "map(").replace(">", ")")


def _duckdb_csv(case: Case, path: Path) -> str:
    options = {"header": True, **case.options}
    given = [
        f"{_DUCKDB_OPTIONS[name]} = {_text(options.pop(name))}" for name in list(options) if name in _DUCKDB_OPTIONS
    ]
    _rest(options)
    if case.schema is not None:
        given.append(f"{'types' if case.options.get('header', True) else 'columns'} = {{{_duckdb_types(case)}}}")
    return f"read_csv({', '.join([_text(str(path)), *given])})"


def _duckdb_json(case: Case, path: Path) -> str:
    _rest(case.options)
    given = [] if case.schema is None else [f"columns = {{{_duckdb_types(case)}}}"]
    return f"read_json({', '.join([_text(str(path)), *given])})"


def by_spark(case: Case, directory: Path, spark: SparkSession) -> Lines:
    """What Spark reads."""
    path = directory / case.file_name
    path.write_bytes(case.bytes)
    match case.format:
        case Parquet() | Orc():
            return _lines(lambda: _spark_rows(spark.read.format(case.format.name).load(str(path))))
        case Text():
            return _lines(lambda: _spark_rows(_spark_text(case, spark).text(str(path))))
        case Csv():
            return _lines(lambda: _spark_rows(_spark_csv(case, spark).csv(str(path))))
        case Json():
            return _lines(lambda: _spark_rows(_spark_json(case, spark).json(str(path))))
    return NONE


def _spark_text(case: Case, spark: SparkSession) -> Any:
    options = case.options
    encoding = options.pop("encoding", "utf-8")
    if encoding != "utf-8":
        raise NoSuchOption("encoding")
    return spark.read


def _spark_csv(case: Case, spark: SparkSession) -> Any:
    options = case.options
    reader = spark.read.option("header", str(options.pop("header", True)).lower())
    reader = reader.schema(case.schema) if case.schema is not None else reader.option("inferSchema", "true")
    for name, other in (("delimiter", "sep"), ("quote", "quote"), ("escape", "escape"), ("comment", "comment")):
        if name in options:
            reader = reader.option(other, options.pop(name) or "")
    if len(options.get("null_values", "")) == 1:
        reader = reader.option("nullValue", options.pop("null_values")[0])
    for name, other in (("date_format", "dateFormat"), ("timestamp_format", "timestampNTZFormat")):
        if name in options:
            reader = reader.option(other, _java_format(options.pop(name)))
    if "encoding" in options:
        reader = reader.option("encoding", options.pop("encoding"))
    _rest(options)
    return reader.option("multiLine", "true")


def _java_format(format: str) -> str:
    for python, java in {"%Y": "yyyy", "%m": "MM", "%d": "dd", "%H": "HH", "%M": "mm", "%S": "ss"}.items():
        format = format.replace(python, java)
    return format


def _spark_json(case: Case, spark: SparkSession) -> Any:
    _rest(case.options)
    reader = spark.read.option("multiLine", str(case.over_lines).lower())
    return reader.schema(case.schema) if case.schema is not None else reader


def _spark_rows(frame: Any) -> Lines:
    from pyspark.sql.types import TimestampType

    instants = [isinstance(field.dataType, TimestampType) for field in frame.schema]
    rows = []
    for row in frame.collect():
        # A timestamp comes in the zone of this process.
        values = [
            value.astimezone() if is_instant and value is not None else value
            for value, is_instant in zip(
                row.asDict(recursive=True).values() if len(set(row.__fields__)) == len(row) else row,
                instants,
                strict=True,
            )
        ]
        rows.append(dict(enumerate(values)))
    schema = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema)
    return (schema, *rows_text(rows))  # type: ignore[arg-type]


def readings_of(engine: str) -> Mapping[str, Lines]:
    """Case → the lines of an engine, read in processes of their own, since some bytes end the process."""
    found: dict[str, Lines] = {}
    while len(found) < len(CASES):
        arguments = [sys.executable, "-m", "tests.corpus.others", engine, str(len(found))]
        ended = subprocess.run(arguments, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        found |= {name: tuple(lines) for name, lines in map(json.loads, ended.stdout.splitlines())}
        if ended.returncode > 0:
            raise RuntimeError(ended.stderr)
        if ended.returncode < 0:
            found[CASES[len(found)].title] = ("crashed",)
    return found


def _reader(engine: str) -> Callable[[Case, Path], Lines]:
    if engine != "spark":
        return {"duckdb": by_duckdb, "pyarrow": by_pyarrow}[engine]
    from spark_bridge.engine.session.local_session import start_local_session
    from spark_bridge.engine.session.settings import SparkSettings

    spark = start_local_session(SparkSettings(), "corpus")
    return lambda case, directory: by_spark(case, directory, spark)


def main() -> None:
    """Prints a line for each case from a number on, as it was read."""
    results = os.fdopen(os.dup(1), "w")
    # Logs and Java print to standard output.
    os.dup2(2, 1)
    read = _reader(sys.argv[1])
    for case in CASES[int(sys.argv[2]) :]:
        with tempfile.TemporaryDirectory() as directory:
            print(json.dumps([case.title, read(case, Path(directory))]), file=results, flush=True)


if __name__ == "__main__":
    main()
