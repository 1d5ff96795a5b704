"""A published table equals the view at the epoch that it names, and is written by nobody else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

import slackwater as sw
from slackwater.commands.maintenance import run_as_owner, vacuum
from slackwater.extensions.table_target import places_of
from slackwater.places.declared_place import DeclaredPlace, PlaceKind
from slackwater.places.overlap_table import require_apart
from slackwater.plugins.publish import publisher
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication import PublishedEpoch
from slackwater.plugins.publish.published_table import PublishedTable
from slackwater.plugins.publish.publisher import require_free
from slackwater.plugins.publish.targets import Target
from slackwater.testing.servers.s3_server import S3Server
from state.clock import Clock
from state.location import Location
from state.tables.group_key import KEY_COLUMN
from state.upkeep.retention import RetentionSettings
from tests.slackwater.plugins.publish.growing_view import GrowingView, events, groups
from tests.slackwater.plugins.publish.published import (
    contents,
    require_equal,
    rows_of_another,
    target_in,
    written_by_another,
)

FORMATS = pytest.mark.parametrize("format", ["delta", "iceberg", "parquet"])


@pytest.mark.more_after(1)
@FORMATS
def test_an_append_view_is_published_and_appended_to(tmp_path: Path, format: str) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, format)
    first = view.create(events(1, 2, 2, 7))
    published = sw.publish(view.store, "v", target)
    assert (published.epoch, published.since, published.is_whole, published.rows) == (first, None, True, 4)
    for numbers in ((3, 4), (), (2, 7)):
        view.table.append(events(*numbers))
        epoch = view.commit()
        published = sw.publish(view.store, "v", target)
        assert (published.epoch, published.is_whole, published.rows) == (epoch, False, len(numbers))
        assert require_equal(view.store, tmp_path, format) == epoch


@pytest.mark.more_after(1)
@FORMATS
def test_changed_and_removed_groups_are_rows_of_one_commit(tmp_path: Path, format: str) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it"), target_in(tmp_path, format)
    first = view.create(groups(dict.fromkeys(range(40), 1)))
    sw.publish(view.store, "v", target)
    view.table.upsert(groups({1: 0, 10: 5, 90: 1}))
    view.commit()
    view.table.delete(groups({2: 1, 20: 1})[KEY_COLUMN].combine_chunks())
    view.commit()
    published = sw.publish(view.store, "v", target)
    assert (published.since, published.rows, published.removed, published.is_whole) == (first, 3, 2, False)
    assert require_equal(view.store, tmp_path, format) == published.epoch


@pytest.mark.more_after(1)
@FORMATS
def test_a_corrected_file_takes_as_many_equal_rows_with_it_as_it_had(tmp_path: Path, format: str) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, format)
    view.create(events(1, 2, 2, 2, 3, 7, 7))
    sw.publish(view.store, "v", target)
    view.table.append(events(2, 3))
    view.commit()
    sw.publish(view.store, "v", target)
    view.correct("n = 2 OR n = 7", events(2, 2, 5, 7))
    published = sw.publish(view.store, "v", target)
    assert (published.is_whole, published.rows, published.removed) == (False, 1, 3)
    assert require_equal(view.store, tmp_path, format) == published.epoch


@pytest.mark.more
@FORMATS
def test_any_epoch_is_published_once_and_the_table_never_goes_back(tmp_path: Path, format: str) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, format)
    epochs = [view.create(events(1))]
    for number in (2, 3):
        view.table.append(events(number))
        epochs.append(view.commit())
    assert sw.publish(view.store, "v", target, epoch=epochs[1]).rows == 2
    assert require_equal(view.store, tmp_path, format) == epochs[1]
    with pytest.raises(
        sw.errors.UsageError, match=f"at epoch {epochs[1]}, later than {epochs[0]}, and never goes back"
    ):
        sw.publish(view.store, "v", target, epoch=epochs[0])
    once, again = (sw.publish(view.store, "v", target) for _ in range(2))
    assert (once.rows, again.rows, again.version) == (1, 0, once.version)
    assert require_equal(view.store, tmp_path, format) == epochs[2]


@pytest.mark.more_after(1)
@FORMATS
def test_a_table_whose_epoch_has_expired_or_whose_view_was_rebuilt_is_written_again(
    tmp_path: Path, format: str
) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, format)
    view.create(events(1, 2))
    sw.publish(view.store, "v", target)
    view.table.append(events(3))
    view.commit()
    run_as_owner(
        view.writer.root.url, {}, lambda store, root: vacuum(store, root, RetentionSettings(keep_s=0, keep_epochs=1))
    )
    published = sw.publish(view.store, "v", target)
    assert (published.is_whole, published.rows) == (True, 3)
    require_equal(view.store, tmp_path, format)


@pytest.mark.more_after(1)
@FORMATS
def test_a_view_that_was_rebuilt_is_written_again(tmp_path: Path, format: str) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, format)
    view.create(events(1, 2))
    sw.publish(view.store, "v", target)
    view.create(events(2, 3))
    assert sw.publish(view.store, "v", target).is_whole
    require_equal(view.store, tmp_path, format)


@pytest.mark.more
@FORMATS
def test_a_commit_of_another_program_is_noticed_and_stays(tmp_path: Path, format: str) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, format)
    view.create(events(1))
    sw.publish(view.store, "v", target)
    written_by_another(tmp_path, format, events(9))
    view.table.append(events(2))
    view.commit()
    with pytest.raises(sw.errors.CommitRefusedError, match="was written by another program"):
        sw.publish(view.store, "v", target)
    assert sorted(rows_of_another(tmp_path, format)["n"].to_pylist()) == [1, 9]


@pytest.mark.more
@FORMATS
def test_a_commit_between_reading_and_writing_is_refused(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, format)
    view.create(events(1))
    sw.publish(view.store, "v", target)
    view.table.append(events(2))
    view.commit()

    def opened(target: Target, clock: Clock) -> PublishedTable:
        table = opened_table(target, clock)
        monkeypatch.setattr(table, "require_fit", lambda schema: written_by_another(tmp_path, format, events(9)))
        return table

    opened_table = publisher.opened_table
    monkeypatch.setattr(publisher, "opened_table", opened)
    with pytest.raises(sw.errors.CommitRefusedError, match="it is unknown whether the epoch is published"):
        sw.publish(view.store, "v", target)


def test_maintenance_of_a_table_is_no_change(tmp_path: Path) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, "delta")
    view.create(events(1))
    sw.publish(view.store, "v", target)
    view.table.append(events(2))
    view.commit()
    sw.publish(view.store, "v", target)
    table = DeltaTable(str(tmp_path / "v"))
    table.optimize.compact()
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    view.table.append(events(3))
    assert view.commit() == sw.publish(view.store, "v", target).epoch
    require_equal(view.store, tmp_path, "delta")


@pytest.mark.more_after(1)
@FORMATS
def test_a_schema_that_does_not_fit_is_refused_before_anything_is_written(tmp_path: Path, format: str) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, format)
    view.create(pa.table({"n": pa.array([1], pa.int64())}))
    sw.publish(view.store, "v", target)
    before = contents(tmp_path, format)
    view.create(pa.table({"n": ["a"], "more": [1.5]}))
    with pytest.raises(sw.errors.SchemaError, match=r"other columns than the view: 'n' is .*; 'more' is missing there"):
        sw.publish(view.store, "v", target)
    assert contents(tmp_path, format) == before

    view.create(pa.table({"n": pa.array([1], pa.duration("us"))}))
    elsewhere = target_in(tmp_path / "elsewhere", format)
    with pytest.raises(sw.errors.SchemaError, match="column 'n' cannot be published to"):
        sw.publish(view.store, "v", elsewhere)
    assert not (tmp_path / "elsewhere" / "v").exists()


@pytest.mark.more_after(1)
@FORMATS
def test_a_table_of_another_root_is_left_alone(tmp_path: Path, format: str) -> None:
    target = target_in(tmp_path, format)
    for name in ("one", "other"):
        view = GrowingView(Location(str(tmp_path / name)))
        view.create(events(1))
        if name == "one":
            sw.publish(view.store, "v", target)
    reason = r"holds view .v. of .*/one \(without an identity\): publish view .v. of .*/other .* to a table of its own"
    with pytest.raises(sw.errors.UsageError, match=reason):
        sw.publish(view.store, "v", target)


@pytest.mark.more
def test_a_table_in_a_bucket_is_reached_by_the_environment(
    tmp_path: Path, s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = s3.storage_options
    for name, option in {
        "AWS_ENDPOINT_URL": "endpoint",
        "AWS_ACCESS_KEY_ID": "access_key_id",
        "AWS_SECRET_ACCESS_KEY": "secret_access_key",
    }.items():
        monkeypatch.setenv(name, options[option])
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'catalog.db'}"}
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups({1: 1, 2: 2}))
    targets = (sw.Delta(f"s3://{bucket}/delta/v"), sw.Iceberg(f"s3://{bucket}/iceberg/v", catalog))
    for _ in range(2):
        for target in targets:
            sw.publish(view.store, "v", target)
        view.table.upsert(groups({2: 3, 4: 4}))
        view.commit()
    rows = DeltaTable(f"s3://{bucket}/delta/v", storage_options={**options}).to_pyarrow_table()
    assert sorted(rows["n"].to_pylist()) == [1, 3, 4]
    table = load_catalog("slackwater", **catalog, **{"s3.endpoint": options["endpoint"]}).load_table("slackwater.v")
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [1, 3, 4]


@pytest.mark.more
def test_the_properties_of_a_catalog_alone_give_access_to_a_bucket(tmp_path: Path, s3: S3Server, bucket: str) -> None:
    target = sw.Iceberg(f"s3://{bucket}/lake/v", catalog_with_access(tmp_path, s3))
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups({1: 1, 2: 2}))
    assert sw.publish(view.store, "v", target).rows == 2
    below = sw.Delta(f"s3://{bucket}/lake/v/below", s3.storage_options)
    with pytest.raises(sw.errors.UsageError, match="publish to a directory outside"):
        sw.publish(view.store, "v", below)
    inside = sw.Iceberg(f"s3://{bucket}/lake/v/inside", catalog_with_access(tmp_path, s3))
    with pytest.raises(sw.errors.UsageError, match="publish to a directory outside"):
        sw.publish(view.store, "v", inside)


def test_a_table_in_a_bucket_of_the_catalog_is_compared_with_the_sources(
    tmp_path: Path, s3: S3Server, bucket: str
) -> None:
    source = DeclaredPlace(PlaceKind.SOURCE, "s", Location(f"s3://{bucket}/lake", s3.storage_options))
    target = sw.Iceberg(f"s3://{bucket}/lake/v", catalog_with_access(tmp_path, s3))
    with pytest.raises(sw.errors.SettingsError, match=r"published table of view v"):
        require_apart([source, *places_of([DeclaredPublication("v", target)])])


def test_an_iceberg_table_may_get_its_credentials_from_its_catalog(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    catalog, wanted = {"type": "rest", "uri": "http://any"}, PublishedEpoch("file:///root", "v", 1)
    require_free(sw.Iceberg(f"s3://{bucket}/v", catalog), wanted)
    for other in (
        sw.Delta(f"s3://{bucket}/v"),
        sw.Iceberg(f"s3://{bucket}/v", {**catalog, "s3.endpoint": s3.endpoint}),
    ):
        with pytest.raises(sw.errors.StorageUnavailableError):
            require_free(other, wanted)


def catalog_with_access(directory: Path, s3: S3Server) -> dict[str, str]:
    names = {"endpoint": "endpoint", "access_key_id": "access-key-id", "secret_access_key": "secret-access-key"}
    access = {f"s3.{name}": s3.storage_options[option] for option, name in names.items()}
    return {"type": "sql", "uri": f"sqlite:///{directory / 'catalog.db'}", "s3.region": "us-east-1", **access}


def test_a_catalog_chooses_the_place_of_a_table_that_is_known_by_its_name(tmp_path: Path) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'c.db'}", "warehouse": f"file://{tmp_path}/warehouse"}
    view, target = GrowingView(Location(str(tmp_path / "root"))), sw.Iceberg("lake.of.v", catalog)
    view.create(events(1))
    assert sw.publish(view.store, "v", target).target == "iceberg:lake.of.v"
    view.table.append(events(2))
    view.commit()
    assert sw.publish(view.store, "v", target).rows == 1
    table = load_catalog("slackwater", **catalog).load_table("lake.of.v")
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [1, 2]
    assert (tmp_path / "warehouse").is_dir()
