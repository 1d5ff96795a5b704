"""What is wrong with a declaration is said before Ray and Spark are started."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from slackwater.testing.s3_server import S3Server
from tests.real.events import parquet, write


def pipeline(root: str | Path, url: str | Path, options: dict[str, str] | None = None) -> sw.Pipeline:
    made = sw.Pipeline("p", root)
    made.source("s", url, format="parquet", storage_options=options)
    made.view("v", "SELECT * FROM s")
    return made


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(sw.BucketNotFoundError, match=str(tmp_path / "nowhere")):
        pipeline(tmp_path / "root", tmp_path / "nowhere").start()
    assert not (tmp_path / "root").exists()


def test_a_missing_bucket_is_named(s3: S3Server, tmp_path: Path) -> None:
    with pytest.raises(sw.BucketNotFoundError, match="s3://no-such-bucket"):
        pipeline(tmp_path / "root", "s3://no-such-bucket/in", s3.storage_options).start()


def test_wrong_credentials_are_refused_and_not_repeated(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    made = sw.Pipeline("p", tmp_path / "root")
    options = {**s3.storage_options, "secret_access_key": "planted-secret"}
    made.source("s", f"s3://{bucket}/in", format="parquet", storage_options=options)
    made.view("v", "SELECT * FROM s")
    with pytest.raises(sw.AccessDeniedError) as caught:
        made.start()
    assert "planted-secret" not in str(caught.value) + repr(made)
    assert bucket in str(caught.value)


def test_a_root_of_another_pipeline_is_refused(tmp_path: Path) -> None:
    from actors.catalog_changes import CatalogChanges
    from state.catalog import Catalog
    from state.clock import SystemClock
    from state.lance_store import LanceStateStore
    from state.location import Location
    from state.records import EpochCounts, EpochSeconds

    write(tmp_path / "in", "a.parquet", parquet([{"x": 1}]))
    store = LanceStateStore.create(Location(str(tmp_path / "root")), SystemClock())
    changes = CatalogChanges(Catalog())
    other = sw.Pipeline("other", tmp_path / "root")
    other.source("s", tmp_path / "in", format="parquet")
    other.view("v", "SELECT * FROM s")
    changes.declare(other._definition(), 0)
    store.take_over()
    store.commit(epoch=5, delta=changes.take_delta([]), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    with pytest.raises(sw.RootMismatchError, match="belongs to the pipeline 'other', not to 'p'"):
        pipeline(tmp_path / "root", tmp_path / "in").start()


def test_declarations_that_cannot_be_meant(tmp_path: Path) -> None:
    made = sw.Pipeline("p", tmp_path)
    with pytest.raises(sw.SettingsError, match="format 'orc' is not known; there are parquet, csv, json"):
        made.source("s", tmp_path, format="orc")
    made.source("s", tmp_path, format="csv")
    with pytest.raises(sw.SettingsError, match="source s is declared twice"):
        made.source("s", tmp_path, format="csv")
    with pytest.raises(sw.SettingsError, match="a b"):
        made.source("a b", tmp_path, format="csv")
    with pytest.raises(sw.SchemaError, match="bigit"):
        made.source("t", tmp_path, format="csv", schema="id bigit")
    with pytest.raises(sw.SettingsError, match="ftp"):
        made.source("t", "ftp://host/x", format="csv")
    with pytest.raises(sw.ViewError, match="has no view"):
        made.start()
    made.view("v", "SELECT * FROM s")
    with pytest.raises(sw.ViewError, match="view v is declared twice"):
        made.view("v", "SELECT 1")

    @made.view
    def w(other):  # type: ignore[no-untyped-def]
        return other

    with pytest.raises(sw.ViewError, match="names the source other, which is not declared; there are s"):
        made.start()


def test_a_pipeline_without_a_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sw.SettingsError, match="has no source"):
        sw.Pipeline("p", tmp_path).start()
