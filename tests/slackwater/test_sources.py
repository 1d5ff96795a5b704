"""Tests of the values that `Pipeline.source` takes: each is checked when it is made; a plain value stands for one."""

from __future__ import annotations

import inspect
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw

_COLUMNS = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])


@pytest.fixture
def pipeline(tmp_path: Path) -> sw.Pipeline:
    return sw.Pipeline("p", tmp_path / "root")


def test_the_face_of_a_source_is_small() -> None:
    parameters = [name for name in inspect.signature(sw.Pipeline.source).parameters if name != "self"]
    assert len(parameters) <= 15, "options that only have sense together are one value"


@pytest.mark.parametrize(
    ("option", "plain", "value"),
    [
        ("schema", "id bigint, at timestamp_ntz", sw.Schema("id bigint, at timestamp_ntz")),
        ("schema", _COLUMNS, sw.Schema(_COLUMNS)),
        ("schema", None, sw.Schema()),
        ("key", "id", sw.Key("id")),
        ("key", ["id", "at"], sw.Key(("id", "at"), order_by=())),
        ("event_time", "at", sw.EventTime("at", lateness=timedelta(), max_ahead="24 hours")),
        ("on_change", "replace", sw.Replace()),
    ],
)
def test_a_plain_value_is_the_value_with_its_defaults(
    pipeline: sw.Pipeline, option: str, plain: Any, value: Any
) -> None:
    for name, given in (("plain", plain), ("value", value)):
        pipeline.source(name, "in", format="json", materialize=True, **{option: given})
    made = pipeline.sources
    assert made["plain"].to_json() == made["value"].to_json()
    assert made["plain"].policy == made["value"].policy
    assert made["plain"].schema == made["value"].schema


def test_every_option_of_a_value_reaches_the_source(pipeline: sw.Pipeline) -> None:
    pipeline.source(
        "orders",
        "in",
        format="csv",
        schema=sw.Schema("id bigint, at timestamp", evolution="widen", timestamps="truncate"),
        on_change=sw.Replace(max_removed_share=0.5, max_removed_files=7),
        materialize=True,
        key=sw.Key("id", order_by="at", deleted="id < 0"),
        event_time=sw.EventTime("at", lateness="1 minute", max_ahead="2 hours", idle="3 days"),
    )
    made = pipeline.sources["orders"]
    assert made.schema is not None and made.schema.names == ["id", "at"]
    assert (made.schema_evolution, made.timestamps) == ("widen", "truncate")
    policy = made.policy
    assert (policy.on_change, policy.max_removed_share, policy.max_removed_files) == ("replace", 0.5, 7)
    assert made.key is not None and (made.key.columns, made.key.order_by) == (("id",), ("at",))
    assert made.key.deleted == "id < 0" and made.metadata == ("path", "row")
    time = made.event_time
    assert time is not None and time.idle_us is not None
    assert [time.lateness_us, time.max_ahead_us, time.idle_us] == [60_000_000, 7_200_000_000, 259_200_000_000]


@pytest.mark.parametrize(
    ("option", "plain", "message"),
    [
        ("key", (), 'source s: Key(columns=()): name at least one column, as in Key("id")'),
        ("key", "", "source s: Key(columns=('',)): name columns of the source"),
        ("event_time", "", "source s: EventTime(column=''): name a column of the source"),
    ],
)
def test_a_plain_value_that_cannot_be_one_is_refused_with_the_source(
    pipeline: sw.Pipeline, option: str, plain: Any, message: str
) -> None:
    with pytest.raises(sw.errors.SettingsError, match=re.escape(message)):
        pipeline.source("s", "in", format="json", **{option: plain})
    assert not pipeline.sources


@pytest.mark.parametrize(
    ("format", "schema", "evolution"),
    [
        ("csv", "id bigint", "strict"),
        ("parquet", sw.Schema("id bigint"), "strict"),
        ("csv", sw.Schema("id bigint", evolution="lenient"), "lenient"),
        ("csv", None, "lenient"),
        ("csv", sw.Schema(evolution="strict"), "strict"),
        ("json", "id bigint", "lenient"),
        ("json", sw.Schema("id bigint", evolution="strict"), "strict"),
        ("text", "line string", "lenient"),
    ],
)
def test_a_declared_schema_is_strict_where_files_show_their_columns(
    pipeline: sw.Pipeline, format: str, schema: str | sw.Schema | None, evolution: str
) -> None:
    pipeline.source("s", "in", format=format, schema=schema)
    assert pipeline.sources["s"].evolution == evolution


def test_a_schema_is_checked_when_it_is_made() -> None:
    with pytest.raises(sw.errors.SettingsError, match=re.escape("Schema(evolution)='loose': give one of strict")):
        sw.Schema(evolution="loose")  # type: ignore[arg-type]
    with pytest.raises(sw.errors.SchemaError, match=r"Schema\(columns=5\): give a text such as"):
        sw.Schema(5)
    with pytest.raises(sw.errors.SchemaError, match="appears twice"):
        sw.Schema("id bigint, id string")
