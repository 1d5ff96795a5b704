"""Errors of a declaration come before Ray and Spark are started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from slackwater.testing.servers.sqs_server import SqsServer
from tests.real.events import parquet, write
from tests.slackwater.cli.command import slackwater


def pipeline(root: str | Path, url: str | Path, options: dict[str, str] | None = None) -> sw.Pipeline:
    made = sw.Pipeline("p", root)
    made.source("s", url, format="parquet", storage_options=options)
    made.view("v", "SELECT * FROM s")
    return made


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(sw.errors.BucketNotFoundError, match=str(tmp_path / "nowhere")):
        pipeline(tmp_path / "root", tmp_path / "nowhere").start()
    assert not (tmp_path / "root").exists()


def test_a_missing_bucket_is_named(s3: S3Server, tmp_path: Path) -> None:
    with pytest.raises(sw.errors.BucketNotFoundError, match="s3://no-such-bucket"):
        pipeline(tmp_path / "root", "s3://no-such-bucket/in", s3.storage_options).start()


def test_wrong_credentials_are_refused_and_not_repeated(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    made = sw.Pipeline("p", tmp_path / "root")
    options = {**s3.storage_options, "secret_access_key": "planted-secret"}
    made.source("s", f"s3://{bucket}/in", format="parquet", storage_options=options)
    made.view("v", "SELECT * FROM s")
    with pytest.raises(sw.errors.AccessDeniedError) as caught:
        made.start()
    assert "planted-secret" not in str(caught.value) + repr(made)
    assert bucket in str(caught.value)


def test_a_root_of_another_pipeline_is_refused(tmp_path: Path) -> None:
    from actors.recovery.catalog_changes import CatalogChanges
    from state.clock import SystemClock
    from state.lance.lance_store import LanceStateStore
    from state.location import Location
    from state.tables.catalog import Catalog
    from state.tables.records import EpochCounts, EpochSeconds

    write(tmp_path / "in", "a.parquet", parquet([{"x": 1}]))
    store = LanceStateStore.create(Location(str(tmp_path / "root")), SystemClock())
    changes = CatalogChanges(Catalog())
    other = sw.Pipeline("other", tmp_path / "root")
    other.source("s", tmp_path / "in", format="parquet")
    other.view("v", "SELECT * FROM s")
    changes.declare(other._definition(), 0)
    store.take_over()
    store.commit(epoch=5, delta=changes.take_delta([]), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    with pytest.raises(sw.errors.RootMismatchError, match="belongs to the pipeline 'other', not to 'p'"):
        pipeline(tmp_path / "root", tmp_path / "in").start()


def test_declarations_that_cannot_be_meant(tmp_path: Path) -> None:
    made = sw.Pipeline("p", tmp_path)
    with pytest.raises(
        sw.errors.SettingsError, match="format 'xml' is not known; the known formats are parquet, csv, json"
    ):
        made.source("s", tmp_path, format="xml")
    made.source("s", tmp_path, format="csv")
    with pytest.raises(sw.errors.SettingsError, match="source s is declared twice"):
        made.source("s", tmp_path, format="csv")
    with pytest.raises(sw.errors.SettingsError, match="source S is declared twice, as s; give the second another name"):
        made.source("S", tmp_path, format="csv")
    with pytest.raises(sw.errors.SettingsError, match="a b"):
        made.source("a b", tmp_path, format="csv")
    with pytest.raises(sw.errors.SchemaError, match="bigit"):
        made.source("t", tmp_path, format="csv", schema="id bigit")
    with pytest.raises(sw.errors.SettingsError, match="ftp"):
        made.source("t", "ftp://host/x", format="csv")
    with pytest.raises(sw.errors.ViewError, match="has no view"):
        made.start()
    made.view("v", "SELECT * FROM s")
    with pytest.raises(sw.errors.ViewError, match="view v is declared twice"):
        made.view("v", "SELECT 1")

    @made.view
    def w(other):  # type: ignore[no-untyped-def]
        return other

    with pytest.raises(sw.errors.ViewError, match="reads other, which is neither a source nor a view; declared are s"):
        made.start()


def test_a_pipeline_without_a_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sw.errors.SettingsError, match="has no source"):
        sw.Pipeline("p", tmp_path).start()


def told(s3: S3Server, bucket: str, root: Path, **options: Any) -> sw.Pipeline:
    made = sw.Pipeline("p", root)
    url, storage_options = f"s3://{bucket}/in", s3.storage_options
    discovery = sw.Notifications(**{"region": "us-east-1", **options})
    made.source("s", url, format="parquet", discovery=discovery, storage_options=storage_options)
    made.view("v", "SELECT * FROM s")
    return made


def test_a_queue_that_cannot_be_used_is_named_with_the_next_step(
    s3: S3Server, bucket: str, sqs: SqsServer, queue_url: str, tmp_path: Path
) -> None:
    missing = queue_url + "-not"
    with pytest.raises(
        sw.errors.QueueNotFoundError, match=f"{missing}: there is no such queue .* create it, or correct"
    ):
        told(s3, bucket, tmp_path / "root", queue_url=missing).start()
    with pytest.raises(sw.errors.QueueNotFoundError, match="correct the URL or the region"):
        told(s3, bucket, tmp_path / "root", queue_url=queue_url, region="eu-west-1").start()
    with pytest.raises(
        sw.errors.StorageUnavailableError, match=r"cannot be reached: .* check Notifications\(endpoint="
    ):
        told(s3, bucket, tmp_path / "root", queue_url=queue_url, endpoint="http://127.0.0.1:1").start()
    assert not (tmp_path / "root").exists()


@pytest.mark.more
def test_a_queue_of_another_root_is_refused_with_both_roots_named(
    s3: S3Server, bucket: str, sqs: SqsServer, queue_url: str, tmp_path: Path
) -> None:
    sqs.client().tag_queue(QueueUrl=queue_url, Tags={"slackwater-root": "s3://lake/other"})
    sqs.send(queue_url, "not ours")
    with pytest.raises(
        sw.errors.SettingsError, match=f"at s3://lake/other, .* at file://{tmp_path}/root.* untag-queue"
    ):
        told(s3, bucket, tmp_path / "root", queue_url=queue_url).start()
    assert sqs.depth(queue_url).visible == 1


def test_the_command_says_in_one_line_what_is_wrong_with_a_queue(
    s3: S3Server, bucket: str, sqs: SqsServer, queue_url: str, tmp_path: Path
) -> None:
    options = {name: value for name, value in s3.storage_options.items() if "access" not in name}
    (tmp_path / "app.py").write_text(
        "import slackwater as sw\n"
        "p = sw.Pipeline('p', 'root')\n"
        f"p.source('s', 's3://{bucket}/in', format='parquet', storage_options={options!r},\n"
        f"    discovery=sw.Notifications(queue_url={queue_url + '-not'!r}, region='us-east-1'))\n"
        "p.view('v', 'SELECT * FROM s')\n"
    )
    keys = {f"AWS_{name.upper()}": value for name, value in s3.storage_options.items() if "access" in name}
    ended = slackwater("run", "app.py:p", cwd=tmp_path, environment=keys)
    assert ended.code == 1
    *_, line = ended.err.strip().splitlines()
    assert f"{queue_url}-not: there is no such queue" in line and "create it" in line
