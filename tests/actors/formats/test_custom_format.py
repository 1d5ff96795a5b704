"""A format of one's own is one file and one class."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import slackwater as sw
from actors.formats.options import Json
from actors.formats.registry import reader_for
from actors.sources.source import SourceDefinition
from state.errors import SettingsError
from state.location import Location
from tests.actors.formats.fixed_width import FixedWidth
from tests.actors.formats.written_files import bad_of, open_written, rows_of


def test_a_format_of_ones_own_is_read_by_its_reader(tmp_path: Path) -> None:
    file = open_written(tmp_path, b"   1one\nx   two\n   3three\n")
    reader = reader_for(FixedWidth())
    schema = reader.infer_schema(file)
    pieces = list(reader.read(file, schema))
    assert rows_of(pieces) == [{"number": 1, "text": "one"}, {"number": 3, "text": "three"}]
    assert [bad.row for bad in bad_of(pieces)] == [1]


@pytest.mark.parametrize("name", ["jsonl", "ndjson"])
def test_lines_of_json_have_their_usual_names(tmp_path: Path, name: str) -> None:
    pipeline = sw.Pipeline("p", tmp_path / "root")
    pipeline.source("s", tmp_path, format=name)
    assert pipeline.sources["s"].format == Json()


def test_a_source_has_it_as_an_object(tmp_path: Path) -> None:
    pipeline = sw.Pipeline("p", tmp_path / "root")
    pipeline.source("s", tmp_path, format=FixedWidth(width=2))
    definition = pipeline.sources["s"]
    assert definition.format == FixedWidth(width=2)
    assert '"format": {"name": "fixed", "width": 2}' in definition.to_json()
    with pytest.raises(SettingsError, match="source t: 7 is not a valid format"):
        pipeline.source("t", tmp_path, format=7)  # type: ignore[arg-type]


def test_a_source_has_it_by_its_name_when_a_package_declares_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = sw.Pipeline("p", tmp_path / "root")
    with pytest.raises(
        SettingsError,
        match="source s: format 'fixed' is not known; the known formats are parquet, csv, json, deb",
    ):
        pipeline.source("s", tmp_path, format="fixed")
    package = tmp_path / "fixed_width-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: fixed-width\nVersion: 1.0\n")
    declared = f"[slackwater.formats]\nfixed = {__name__}:FixedWidth\navro = {__name__}:FixedWidth\n"
    (package / "entry_points.txt").write_text(declared)
    assert pipeline.sources == {}
    pipeline.source("built_in", tmp_path, format="avro")
    assert pipeline.sources["built_in"].format == sw.Avro()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    pipeline.source("of_a_package", tmp_path, format="avro")
    assert pipeline.sources["of_a_package"].format == FixedWidth()
    pipeline.source("s", tmp_path, format="fixed")
    definition = pipeline.sources["s"]
    assert definition.format == FixedWidth()
    again = SourceDefinition.of_json(
        "s", SourceDefinition(name="s", location=Location("/x"), format=FixedWidth(width=9)).to_json()
    )
    assert again.format == FixedWidth(width=9)


@pytest.mark.parametrize("name", ["xlsx", "Excel"])
def test_excel_is_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="Excel is not read: save each sheet of a workbook as CSV"):
        sw.Pipeline("p", tmp_path / "root").source("s", tmp_path, format=name)


def test_a_server_of_sftp_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="SFTP servers are not read: mount the directory, or copy its files"):
        sw.Pipeline("p", tmp_path / "root").source("s", "sftp://host/in", format="csv")
