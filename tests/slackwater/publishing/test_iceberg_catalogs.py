"""Iceberg tables in catalogs that are servers: Glue, as moto answers, and one behind the REST protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

import slackwater as sw
from slackwater.testing.servers.sqs_server import SqsServer
from state.location import Location
from tests.slackwater.publishing.growing_view import GrowingView, groups
from tests.slackwater.publishing.rest_catalog import rest_catalog


@pytest.fixture(params=["glue", "rest"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """The properties of a catalog."""
    if request.param == "rest":
        with rest_catalog(str(tmp_path)) as (url, asked):
            yield {"type": "rest", "uri": url}
        assert any(each.endswith("/tables/v") and each.startswith("POST") for each in asked), "the server has committed"
        return
    server: SqsServer = request.getfixturevalue("sqs")
    access = {"glue.access-key-id": "any", "glue.secret-access-key": "any", "glue.region": "us-east-1"}
    warehouse = {"warehouse": f"file://{tmp_path}/warehouse"}
    yield {"type": "glue", "glue.endpoint": server.endpoint, **access, **warehouse}


def counts(catalog: Mapping[str, str], table: str) -> list[int]:
    return sorted(load_catalog("reader", **catalog).load_table(table).scan().to_arrow()["n"].to_pylist())


def test_a_table_follows_a_view_and_names_its_epoch(catalog: Mapping[str, str], tmp_path: Path) -> None:
    database = f"lake_{tmp_path.name}".replace("-", "_").lower()
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups({1: 1, 2: 2}))
    target = sw.Iceberg(f"{database}.v", catalog)
    assert view.store.publish("v", target).rows == 2
    assert counts(catalog, f"{database}.v") == [1, 2]
    view.table.upsert(groups({2: 3, 4: 4}))
    epoch = view.commit()
    view.store.publish("v", target)
    assert counts(catalog, f"{database}.v") == [1, 3, 4]
    snapshot = load_catalog("reader", **catalog).load_table(f"{database}.v").current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    assert str(epoch) in snapshot.summary.additional_properties.values()
    assert view.store.publish("v", target).rows == 0, "there is nothing new"


def test_what_somebody_else_has_written_stays(catalog: Mapping[str, str], tmp_path: Path) -> None:
    database = f"other_{tmp_path.name}".replace("-", "_").lower()
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups({1: 1}))
    target = sw.Iceberg(f"{database}.v", catalog)
    view.store.publish("v", target)
    table = load_catalog("writer", **catalog).load_table(f"{database}.v")
    table.append(table.scan().to_arrow())
    view.table.upsert(groups({2: 2}))
    view.commit()
    with pytest.raises(sw.CommitRefusedError, match="was written by another program"):
        view.store.publish("v", target)
    assert counts(catalog, f"{database}.v") == [1, 1]


def test_a_catalog_that_does_not_answer_is_named(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups({1: 1}))
    nowhere = sw.Iceberg("lake.v", {"type": "rest", "uri": "http://127.0.0.1:9"})
    with pytest.raises(sw.SlackwaterError, match=r"lake\.v"):
        view.store.publish("v", nowhere)
