"""Tests of the options of a source: their values, and those that go together."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from actors.formats.options import Csv, Json, Parquet, Text
from actors.formats.registry import Format
from actors.sources.pipeline_definition import Topology, name_actors
from actors.sources.source import FilePolicy, SourceDefinition, recorded_filter
from state.errors import SchemaError
from state.location import Location


@pytest.mark.parametrize("share", [-0.1, 1.1, True, "20 %", float("nan")])
def test_a_share_is_from_0_to_1(share: float) -> None:
    with pytest.raises(sw.errors.SettingsError, match=r"max_removed_share=.*: give a share from 0 to 1"):
        sw.Replace(max_removed_share=share)


@pytest.mark.parametrize("files", [-1, 1.5, True, "100"])
def test_a_number_of_files_is_a_whole_number(files: int) -> None:
    with pytest.raises(sw.errors.SettingsError, match=r"max_removed_files=.*: give a whole number, 0 or more"):
        sw.Replace(max_removed_files=files)


@pytest.mark.parametrize("limits", [{}, {"max_removed_share": 0.5}, {"max_removed_files": 0}])
def test_a_source_that_replaces_has_limits_of_removals(tmp_path: Path, limits: dict[str, float]) -> None:
    pipeline = sw.Pipeline("p", tmp_path / "root")
    replaces = sw.Replace(**limits)  # type: ignore[arg-type]
    pipeline.source("s", tmp_path, format="csv", on_change=replaces, materialize=True)
    pipeline.source("t", tmp_path, format="csv", on_change="replace", materialize=True)
    assert pipeline.sources["s"].policy == FilePolicy(on_change="replace", **limits)  # type: ignore[arg-type]
    assert pipeline.sources["t"].policy == FilePolicy(on_change="replace")


@pytest.mark.parametrize(
    ("format", "columns", "said"),
    [
        (Csv(), pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))]), "column tags: CSV has no list<"),
        (Text(), pa.schema([("n", pa.int64())]), 'declare "value string"'),
        (Json(), pa.schema([("id", pa.int64()), ("Id", pa.int64())]), "the columns id and Id, which Spark takes for"),
        (Parquet(), pa.schema([("id", pa.int64()), ("id", pa.int64())]), "the columns id and id"),
    ],
)
def test_declared_columns_that_no_file_could_fill_are_refused(
    format: Format, columns: pa.Schema, said: str, tmp_path: Path
) -> None:
    with pytest.raises(SchemaError, match=re.escape(said)):
        SourceDefinition(name="s", location=Location(str(tmp_path)), format=format, schema=columns)


def test_another_number_of_name_actors_is_the_same_source(tmp_path: Path) -> None:
    pipeline = sw.Pipeline("p", tmp_path / "root")
    for number in (1, 3):
        pipeline.source(f"s{number}", tmp_path, format="csv", discovery=sw.Listing(name_actors=number))
    one, three = pipeline.sources.values()
    assert one.to_json() == three.to_json()
    assert name_actors(one) == ()
    assert name_actors(three) == ("names-s3-0", "names-s3-1", "names-s3-2")


def test_barriers_pass_the_name_actors_of_every_source(tmp_path: Path) -> None:
    pipeline = sw.Pipeline("p", tmp_path / "root")
    pipeline.source("a", tmp_path / "a", format="csv", discovery=sw.Listing(name_actors=2))
    pipeline.source("b", tmp_path / "b", format="csv")
    pipeline.view("v", "SELECT * FROM a")
    topology = Topology(pipeline._definition(), ["fetch-0"])
    assert topology.names == {"a": ("names-a-0", "names-a-1"), "b": ()}
    assert topology.actors == ("list-a", "list-b", "names-a-0", "names-a-1", "dispatcher", "fetch-0", "merger")


def test_a_source_that_an_earlier_version_declared_reads_hidden_directories() -> None:
    new = SourceDefinition(name="s", location=Location("/raw"), format=sw.Csv())
    recorded = json.loads(new.to_json())
    assert new.path_filter.reason("_temporary/a.csv") == "hidden"
    assert recorded_filter(json.dumps(recorded)).reason("_temporary/a.csv") == "hidden"
    del recorded["rules"]
    old = json.dumps(recorded)
    assert recorded_filter(old).accepts("_temporary/a.csv")
    assert new.as_recorded(old).path_filter.accepts("_temporary/a.csv")
