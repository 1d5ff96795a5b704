"""Changes in Debezium's envelope are rows of the table, with columns of the envelope beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from actors.file_errors import UnreadableFile
from actors.formats.text.debezium import DebeziumReader
from actors.sources.source import SourceDefinition
from state.errors import SettingsError
from tests.actors.formats.written_files import bad_of, open_written, rows_of

_SCHEMA = pa.schema([("id", pa.int64()), ("amount", pa.int64()), ("__op", pa.string()), ("__source_lsn", pa.int64())])


def _lines(*changes: Any) -> bytes:
    return "\n".join(map(json.dumps, changes)).encode()


_CREATED = {"before": None, "after": {"id": 1, "amount": 5}, "op": "c", "ts_ms": 7, "source": {"lsn": 1, "db": "a"}}
_DELETED = {"before": {"id": 1, "amount": None}, "after": None, "op": "d", "ts_ms": 8, "source": {"lsn": 2, "db": "a"}}
_TRUNCATED = {"before": None, "after": None, "op": "t", "source": {"lsn": 3}}


def test_a_file_without_an_envelope_is_unreadable_with_and_without_a_schema(tmp_path: Path) -> None:
    content = b'{"id": 1}\n{"id": 2}\n'
    with pytest.raises(UnreadableFile, match="no line has Debezium's envelope"):
        DebeziumReader().infer_schema(open_written(tmp_path, content))
    with pytest.raises(UnreadableFile, match="no line has Debezium's envelope"):
        list(DebeziumReader().read(open_written(tmp_path, content), pa.schema([("id", pa.int64())])))


def test_a_row_is_after_or_of_a_deletion_before(tmp_path: Path) -> None:
    file = open_written(tmp_path, _lines(_CREATED, _DELETED))
    pieces = list(DebeziumReader().read(file, _SCHEMA))
    assert rows_of(pieces) == [
        {"id": 1, "amount": 5, "__op": "c", "__source_lsn": 1},
        {"id": 1, "amount": None, "__op": "d", "__source_lsn": 2},
    ]


def test_inference_finds_the_columns_of_the_table_and_the_plain_ones_of_the_envelope(tmp_path: Path) -> None:
    created = {**_CREATED, "transaction": {"id": "t1"}}
    schema = DebeziumReader().infer_schema(open_written(tmp_path, _lines(created, _CREATED)))
    assert schema.names == ["id", "amount", "__source_lsn", "__source_db", "__op", "__ts_ms"]


def test_a_change_without_a_row_is_a_bad_record(tmp_path: Path) -> None:
    file = open_written(tmp_path, _lines(_TRUNCATED, _CREATED, 5, _TRUNCATED))
    pieces = list(DebeziumReader().read(file, _SCHEMA))
    assert len(rows_of(pieces)) == 1
    assert [each.row for each in bad_of(pieces)] == [0, 2, 3]
    assert "neither `before` nor `after`" in bad_of(pieces)[0].reason and b'"op": "t"' in bad_of(pieces)[0].raw


def test_lines_without_the_envelope_are_refused_with_the_format_that_reads_them(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match='read them with format="json"'):
        DebeziumReader().infer_schema(open_written(tmp_path, _lines({"id": 1})))


def test_an_envelope_with_its_schema_is_refused_with_the_setting_of_the_connector(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"value\.converter\.schemas\.enable=false"):
        DebeziumReader().infer_schema(
            open_written(tmp_path, _lines({"schema": {"type": "struct"}, "payload": _CREATED}))
        )


def test_a_source_with_a_key_leaves_out_deletions(tmp_path: Path) -> None:
    pipeline = sw.Pipeline("p", tmp_path / "root")
    pipeline.source("orders", tmp_path, format="debezium", key=sw.Key("id", order_by="__source_lsn"))
    pipeline.source("all", tmp_path, format=sw.Debezium(), key=sw.Key("id", deleted="false"))
    keys = {name: source.key for name, source in pipeline.sources.items()}
    assert keys["orders"] and keys["orders"].deleted == "__op = 'd'"
    assert keys["all"] and keys["all"].deleted == "false"
    recorded = SourceDefinition.of_json("orders", pipeline.sources["orders"].to_json())
    assert recorded.key == keys["orders"] and recorded.format == sw.Debezium()


def test_columns_are_not_added_from_within_the_envelope(tmp_path: Path) -> None:
    pipeline = sw.Pipeline("p", tmp_path / "root")
    with pytest.raises(SettingsError, match="declare a schema with the columns"):
        pipeline.source("orders", tmp_path, format="debezium", schema=sw.Schema(evolution="add_columns"))
