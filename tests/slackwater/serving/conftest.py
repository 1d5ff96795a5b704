"""Endpoints over roots that were written by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from state.location import Location
from tests.slackwater.reading.written_root import WrittenRoot, write_root
from tests.slackwater.serving.served_sql import ServedSql, served
from tests.slackwater.serving.value_root import write_values


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSql]:
    """A root with a column of every type."""
    with served(write_values(tmp_path_factory.mktemp("values") / "root")) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> WrittenRoot:
    """A root with four epochs."""
    place = tmp_path_factory.mktemp("written")
    return write_root(Location(str(place / "root")), Location(str(place / "raw")))


@pytest.fixture(scope="module")
def flights(written: WrittenRoot) -> Iterator[ServedSql]:
    """The endpoint of that root."""
    with served(written.root.url) as endpoint:
        yield endpoint
