"""Iceberg tables in catalogs that are servers: Glue, as moto answers, and one behind the REST protocol."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

import slackwater as sw
from slackwater.plugins.publish import timed_catalogs
from slackwater.testing.servers.sqs_server import SqsServer
from state.location import Location
from tests.slackwater.plugins.publish.growing_view import GrowingView, groups
from tests.slackwater.plugins.publish.rest_catalog import rest_catalog


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


@contextmanager
def silent_server() -> Iterator[tuple[str, list[socket.socket]]]:
    """The URL of a server that accepts connections and never answers, and the list of its connections."""
    connections: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                connections.append(listening.accept()[0])
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", connections
        listening.shutdown(socket.SHUT_RDWR)


def counts(catalog: Mapping[str, str], table: str) -> list[int]:
    return sorted(load_catalog("reader", **catalog).load_table(table).scan().to_arrow()["n"].to_pylist())


@pytest.mark.more_after(1)
def test_a_table_follows_a_view_and_names_its_epoch(catalog: Mapping[str, str], tmp_path: Path) -> None:
    database = f"lake_{tmp_path.name}".replace("-", "_").lower()
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups({1: 1, 2: 2}))
    target = sw.Iceberg(f"{database}.v", catalog)
    assert sw.publish(view.store, "v", target).rows == 2
    assert counts(catalog, f"{database}.v") == [1, 2]
    view.table.upsert(groups({2: 3, 4: 4}))
    epoch = view.commit()
    sw.publish(view.store, "v", target)
    assert counts(catalog, f"{database}.v") == [1, 3, 4]
    snapshot = load_catalog("reader", **catalog).load_table(f"{database}.v").current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    assert str(epoch) in snapshot.summary.additional_properties.values()
    assert sw.publish(view.store, "v", target).rows == 0, "there is nothing new"


@pytest.mark.more_after(1)
def test_what_somebody_else_has_written_stays(catalog: Mapping[str, str], tmp_path: Path) -> None:
    database = f"other_{tmp_path.name}".replace("-", "_").lower()
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups({1: 1}))
    target = sw.Iceberg(f"{database}.v", catalog)
    sw.publish(view.store, "v", target)
    table = load_catalog("writer", **catalog).load_table(f"{database}.v")
    table.append(table.scan().to_arrow())
    view.table.upsert(groups({2: 2}))
    view.commit()
    with pytest.raises(sw.errors.CommitRefusedError, match="was written by another program"):
        sw.publish(view.store, "v", target)
    assert counts(catalog, f"{database}.v") == [1, 1]


def test_a_catalog_that_does_not_answer_is_named(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups({1: 1}))
    nowhere = sw.Iceberg("lake.v", {"type": "rest", "uri": "http://127.0.0.1:9"})
    with pytest.raises(sw.SlackwaterError, match=r"lake\.v"):
        sw.publish(view.store, "v", nowhere)


@pytest.mark.more
def test_a_commit_whose_answer_was_lost_keeps_its_files(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups({1: 1}))
    with rest_catalog(str(tmp_path), repeats=True) as (url, _):
        catalog = {"type": "rest", "uri": url}
        target = sw.Iceberg("lake.v", catalog)
        with pytest.raises(
            sw.errors.CommitRefusedError, match="it is unknown whether the epoch is published; publish again"
        ):
            sw.publish(view.store, "v", target)
        assert counts(catalog, "lake.v") == [1]
        assert sw.publish(view.store, "v", target).rows == 0, "the first commit counts"
        view.table.upsert(groups({1: 3, 2: 2}))
        view.commit()
        with pytest.raises(
            sw.errors.CommitRefusedError, match="it is unknown whether the epoch is published; publish again"
        ):
            sw.publish(view.store, "v", target)
        assert counts(catalog, "lake.v") == [2, 3]


_SILENT: dict[str, Callable[[str], dict[str, Any]]] = {
    "type": lambda url: {"type": "rest", "uri": url},
    "uri": lambda url: {"uri": url},
    "token": lambda url: {
        "uri": url,
        "auth": {"type": "oauth2", "oauth2": {"client_id": "any", "client_secret": "any", "token_url": url}},
    },
    "sql": lambda url: {"uri": url.replace("http://", "postgresql+psycopg://any@")},
}


@pytest.mark.more
@pytest.mark.parametrize("name", _SILENT)
def test_a_catalog_that_accepts_a_connection_and_never_answers_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed_catalogs, "ANSWER_TIMEOUT_S", 0.2)
    monkeypatch.setattr(timed_catalogs, "CONNECT_TIMEOUT_S", 2)
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups({1: 1}))
    with silent_server() as (url, connections):
        reason = "connection timeout expired" if name == "sql" else r"read timeout=0\.2"
        with pytest.raises(sw.errors.StorageUnavailableError, match=rf"iceberg:lake\.v .*{reason}"):
            sw.publish(view.store, "v", sw.Iceberg("lake.v", _SILENT[name](url)))
    assert len(connections) == 1 or name == "sql", "a request is sent once"


def test_a_store_that_accepts_a_connection_and_never_answers_a_delta_table_is_named(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups({1: 1}))
    with silent_server() as (url, connections):
        access = {"endpoint": url, "access_key_id": "any", "secret_access_key": "any", "timeout": "200ms"}
        with pytest.raises(sw.errors.StorageUnavailableError, match=r"s3://lake/v cannot be read"):
            sw.publish(view.store, "v", sw.Delta("s3://lake/v", access))
    assert len(connections) == 4, "delta-rs tries ten times by itself"
