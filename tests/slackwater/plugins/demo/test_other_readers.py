"""What others read of the demo's view is compared with the view at the epoch that they name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import CommitProperties, write_deltalake

import slackwater as sw
from slackwater.plugins.demo.other_readers import PublishedPlace, answer_of_sql, published_answers
from state.location import Location
from tests.slackwater.plugins.publish.growing_view import GrowingView, groups


def test_each_published_table_is_compared_at_its_own_epoch(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    place = PublishedPlace(str(tmp_path / "published"), str(tmp_path / "catalog.db"), "v")
    first = view.create(groups({1: 1, 2: 2, 10: 3}))
    assert list(published_answers(view.store, place, {})) == []
    sw.publish(view.store, "v", sw.Iceberg(place.iceberg, place.catalog_properties))
    view.table.append(groups({3: 4}))
    second = view.commit()
    sw.publish(view.store, "v", sw.Delta(place.delta))
    answers = list(published_answers(view.store, place, {}))
    assert [(each.reader, each.epoch, len(each.found), each.is_equal) for each in answers] == [
        ("Delta", second, 4, True),
        ("Iceberg", first, 3, True),
    ]


def test_a_table_that_lacks_a_row_is_not_equal(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    place = PublishedPlace(str(tmp_path / "published"), str(tmp_path / "catalog.db"), "v")
    epoch = view.create(groups({1: 1, 2: 2}))
    rows = view.store.snapshot().view("v").to_arrow().slice(1)
    properties = CommitProperties(custom_metadata={"slackwater.epoch": str(epoch)})
    write_deltalake(place.delta, rows, commit_properties=properties)
    [answer] = published_answers(view.store, place, {})
    assert not answer.is_equal and len(answer.found) == 1 and len(answer.expected) == 2


@pytest.mark.more
@pytest.mark.parametrize("client", ["psql", "psycopg"])
def test_a_client_of_postgresql_is_asked_through_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    if client == "psycopg":
        monkeypatch.setenv("PATH", str(tmp_path))
    elif shutil.which("psql") is None:
        pytest.skip("psql is not on this machine")
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    epoch = view.create(groups({1: 1, 2: 2, 3: 4}))
    answer = answer_of_sql(view.store, str(tmp_path / "root"), {}, "v", ["n"])
    assert (answer.reader, answer.epoch, answer.found) == (client, epoch, ["(3, 7)"])
    assert answer.is_equal
