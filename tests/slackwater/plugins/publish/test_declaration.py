"""Publications that cannot be are refused with the option and the next step: when declared, or before the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.start_check import check_publications
from slackwater.plugins.publish.targets import Target
from slackwater.testing.servers.s3_server import S3Server
from state.clock import SystemClock
from state.location import Location
from tests.slackwater.plugins.publish.growing_view import GrowingView, events
from tests.slackwater.plugins.publish.published import target_in, written_by_another


def pipeline(directory: Path) -> sw.Pipeline:
    made = sw.Pipeline("events", directory / "root")
    made.source("events", directory / "in", format="parquet")
    return made


def test_a_view_has_one_table_or_several_or_none(tmp_path: Path) -> None:
    made = pipeline(tmp_path)
    made.view("one", "SELECT * FROM events", publish=sw.Delta(str(tmp_path / "one")))
    made.view("two", "SELECT * FROM events", publish=[sw.Delta(str(tmp_path / "two")), sw.Iceberg("lake.two")])

    @made.view(publish=sw.ParquetFiles(str(tmp_path / "three")))
    def three(events: Any) -> Any:
        return events

    made.view("four", "SELECT * FROM events")
    assert {name: len(each) for name, each in made.publications.items()} == {"one": 1, "two": 2, "three": 1, "four": 0}


@pytest.mark.parametrize("publish", ["delta:/tmp/x", {"uri": "/tmp/x"}, [sw.Delta("/tmp/x"), "/tmp/y"], None])
def test_what_is_no_table_is_named(tmp_path: Path, publish: Any) -> None:
    with pytest.raises(sw.errors.SettingsError, match=r"view v: publish=.* is not a table: give sw.Delta"):
        pipeline(tmp_path).view("v", "SELECT * FROM events", publish=publish)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sw.Delta("/tmp/x", interval_s=-1), r"Delta\(interval_s=-1\): give a number of seconds"),
        (lambda: sw.Iceberg("/tmp/x", keep_s=float("nan")), r"Iceberg\(keep_s=nan\): give a number of seconds"),
        (lambda: sw.ParquetFiles("/tmp/x", interval_s=True), r"ParquetFiles\(interval_s=True\)"),
        (lambda: sw.ParquetFiles("/tmp/x", partition_by=["a", "a"]), "give names of columns, each once"),
        (lambda: sw.ParquetFiles("https://host/x"), "a web server is only read"),
        (lambda: sw.Iceberg("lake.v", table="lake.w"), "both are names; give one of them"),
    ],
)
def test_an_option_that_is_not_valid_is_named(make: Any, message: str) -> None:
    with pytest.raises(sw.errors.SettingsError, match=message):
        make()


def test_two_publications_to_one_table_are_refused(tmp_path: Path) -> None:
    made = pipeline(tmp_path)
    for name in ("one", "other"):
        made.view(name, "SELECT * FROM events", publish=sw.Delta(str(tmp_path / "t")))
    with pytest.raises(
        sw.errors.SettingsError,
        match=r"the published table of view one .* is the same as the published table of view other",
    ):
        made.explain()


def test_a_table_below_a_source_is_refused(tmp_path: Path) -> None:
    made = pipeline(tmp_path)
    made.view("v", "SELECT * FROM events", publish=sw.ParquetFiles(str(tmp_path / "in" / "out")))
    with pytest.raises(sw.errors.SettingsError, match="the source would read the files of the table as data"):
        made.explain()


def test_a_table_gets_the_access_of_the_root_on_the_same_kind_of_store() -> None:
    made = sw.Pipeline("events", "s3://lake/root", storage_options={"region": "eu-west-1"})
    given = sw.Delta("s3://lake/b", {"region": "us-east-2"})
    made.view("v", "SELECT 1", publish=[sw.Delta("s3://lake/a"), given, sw.ParquetFiles("/tmp/x"), sw.Iceberg("a.b")])
    publications = [each for each in made.publications["v"] if isinstance(each, DeclaredPublication)]
    options = [getattr(each.target, "storage_options", None) for each in publications]
    assert options == [{"region": "eu-west-1"}, {"region": "us-east-2"}, {}, None]


@pytest.mark.more_after(1)
@pytest.mark.parametrize(("kind", "library"), [("Delta", "deltalake"), ("Iceberg", "pyiceberg")])
def test_a_missing_library_is_named_at_the_declaration(tmp_path: Path, kind: str, library: str) -> None:
    code = (
        f"import sys; sys.modules[{library!r}] = None; import slackwater as sw;"
        f"p = sw.Pipeline('p', '{tmp_path}/root'); p.view('v', 'SELECT 1', publish=sw.{kind}('{tmp_path}/v'))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"needs {library}; pip install 'slackwater[{kind.lower()}]'" in ended.stderr


def check(view: GrowingView, target: Target) -> None:
    check_publications(view.writer.root, [DeclaredPublication("v", target)], SystemClock())


@pytest.mark.more_after(1)
@pytest.mark.parametrize("format", ["delta", "iceberg", "parquet"])
def test_a_table_is_looked_at_before_a_run(tmp_path: Path, format: str) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path / "new", format)
    view.create(events(1))
    check(view, target)
    assert not (tmp_path / "new" / "v").exists(), "a look leaves nothing"
    sw.publish(view.store, "v", target)
    before = sorted((tmp_path / "new" / "v").rglob("*"))
    check(view, target)
    assert sorted((tmp_path / "new" / "v").rglob("*")) == before
    other = GrowingView(Location(str(tmp_path / "other")))
    other.create(events(1))
    with pytest.raises(sw.errors.UsageError, match=r"holds view 'v' of .*/root"):
        check(other, target)
    written_by_another(tmp_path / "new", format, events(9))
    with pytest.raises(sw.errors.CommitRefusedError, match="was written by another program"):
        check(view, target)


def test_a_table_of_another_shape_is_refused_before_a_run(tmp_path: Path) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, "delta")
    view.create(events(1))
    sw.publish(view.store, "v", target)
    view.create(events(1).select(["n", "name"]))
    with pytest.raises(sw.errors.SchemaError, match="has other columns than the view: 'tiny' is"):
        check(view, target)


def test_a_place_without_the_right_to_write_is_refused_before_a_run(tmp_path: Path, s3: S3Server, bucket: str) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    view.create(events(1))
    (tmp_path / "file").write_text("")
    with pytest.raises(sw.errors.StorageError, match=str(tmp_path / "file")):
        check(view, target_in(tmp_path / "file", "delta"))
    with pytest.raises(sw.errors.StorageError, match=r"access to s3://.* is refused: correct the credentials"):
        check(view, sw.ParquetFiles(f"s3://{bucket}/v", {**s3.storage_options, "secret_access_key": "wrong"}))
    with pytest.raises(sw.errors.SettingsError, match=r"iceberg:lake\.v needs a catalog"):
        check(view, sw.Iceberg("lake.v"))


def test_a_root_that_is_not_there_yet_is_no_fault(tmp_path: Path) -> None:
    publication = DeclaredPublication("v", target_in(tmp_path, "delta"))
    check_publications(Location(str(tmp_path / "root")), [publication], SystemClock())
    assert not (tmp_path / "root").exists()


def test_a_run_whose_table_is_refused_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "v").mkdir()
    pq.write_table(events(1), tmp_path / "v" / "foreign.parquet")
    made = pipeline(tmp_path)
    made.view("v", "SELECT * FROM events", publish=target_in(tmp_path, "parquet"))
    with pytest.raises(sw.errors.CommitRefusedError, match=r"parquet:.*/v was written by another program"):
        made.run(until="caught_up")
    assert not (tmp_path / "root" / "owner.json").exists()
