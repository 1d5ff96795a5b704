"""The oracle sees every kind of difference: a comparison that cannot fail would prove nothing."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater.demo.flights import FLIGHTS, FORMATS, SCHEMA, DayFile, day_files
from slackwater.demo.oracle import Oracle

_SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
_ROWS: list[dict[str, object]] = [
    {"id": 1, "name": "tea", "price": 2.5},
    {"id": 2, "name": None, "price": 9.0},
    {"id": 3, "name": "rum", "price": None},
]
_TEXTS = {
    "csv": b"id,name,price\n1,tea,2.5\n2,NA,9.0\n3,rum,\n",
    "json": b'{"id":1,"name":"tea","price":2.5}\n{"id":2,"price":9.0}\n{"id":3,"name":"rum","price":null}\n',
}
_ALL = "SELECT * FROM things"


def _body(format: str) -> bytes:
    if format != "parquet":
        return _TEXTS[format]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(_ROWS, _SCHEMA), sink)
    return sink.getvalue()


def _ledger(rows: int, format: str = "csv") -> pa.Table:
    return pa.table({"path": [f"things.{format}"], "rows_read": [rows]})


def _view(*rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), _SCHEMA)


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with Oracle(lambda path: _body(path.rpartition(".")[2])) as made:
        yield made


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_exactly_the_first_rows_of_a_file_count(oracle: Oracle, format: str, rows: int) -> None:
    assert oracle.load("things", format, _SCHEMA, _ledger(rows, format)) == rows
    assert oracle.compare("v", _view(*reversed(_ROWS[:rows])), _ALL).equal
    assert not oracle.compare("v", _view(*_ROWS[: rows + 1] if rows < 3 else _ROWS[:2]), _ALL).equal


@pytest.mark.parametrize(
    "wrong",
    [
        _ROWS[:2],
        [*_ROWS, _ROWS[0]],
        [*_ROWS[:2], _ROWS[1]],
        [{**_ROWS[0], "id": 7}, *_ROWS[1:]],
        [{**_ROWS[0], "price": 2.500001}, *_ROWS[1:]],
        [{**_ROWS[0], "name": None}, *_ROWS[1:]],
        [],
    ],
    ids=["lost", "twice", "replaced", "integer", "float", "null", "empty"],
)
def test_a_wrong_view_is_different(oracle: Oracle, wrong: list[dict[str, object]]) -> None:
    oracle.load("things", "csv", _SCHEMA, _ledger(3))
    comparison = oracle.compare("v", _view(*wrong), _ALL)
    assert not comparison.equal and comparison.difference


def test_the_last_digits_of_a_float_do_not_count(oracle: Oracle) -> None:
    oracle.load("things", "csv", _SCHEMA, _ledger(3))
    assert oracle.compare("v", _view({**_ROWS[0], "price": 2.5 + 1e-15}, *_ROWS[1:]), _ALL).equal


def test_a_ledger_that_claims_more_rows_than_the_file_has_is_wrong(oracle: Oracle) -> None:
    with pytest.raises(AssertionError, match=r"things\.csv"):
        oracle.load("things", "csv", _SCHEMA, _ledger(4))


def test_every_flight_is_in_exactly_one_file_and_reads_back_in_every_format() -> None:
    files: dict[str, DayFile] = {file.key: file for file in day_files()}
    assert len(files) == 365 and {file.format for file in files.values()} == set(FORMATS)
    assert sum(file.rows for file in files.values()) == FLIGHTS
    first = [next(file for file in files.values() if file.format == name) for name in FORMATS]
    with Oracle(lambda path: files[path].body) as oracle:
        for file in first:
            ledger = pa.table({"path": [file.key], "rows_read": [file.rows]})
            assert oracle.load(file.format, file.format, SCHEMA, ledger) == file.rows
            view = pa.table({"n": [file.rows], "carriers": [file.rows]})
            assert oracle.compare("v", view, f"SELECT count(*) n, count(carrier) carriers FROM {file.format}").equal
