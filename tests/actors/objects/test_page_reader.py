"""Pages that are listed side by side are the pages of one listing, and cost next to nothing more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from actors.objects.listing_page import ListingPage
from actors.objects.object_store import ObjectStore
from actors.objects.page_reader import SIDE_BY_SIDE, PageReader
from slackwater.testing.proxies.request_log import RequestLog
from slackwater.testing.servers.s3_server import S3Server
from state.errors import StorageUnavailableError
from state.location import Location

_NAMES = 6_400
_AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module", name="wide")
def _wide(s3: S3Server) -> str:
    """A bucket of 6,400 names in 40 directories, with some unusual names among them."""
    bucket = s3.create_bucket("wide-listing")
    keys = [f"data/day={number % 40:02}/{number:05} é+%20#.csv" for number in range(_NAMES)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda key: s3.put(bucket, key, b"x"), keys))
    return bucket


def listed(reader: PageReader, most: int = SIDE_BY_SIDE) -> list[ListingPage]:
    reader.begin()
    return list(iter(lambda: reader.read(most), None))


def names(pages: list[ListingPage]) -> list[str]:
    return sorted(path for page in pages for path in page.paths)


def reader_of(log: RequestLog, bucket: str) -> PageReader:
    return PageReader(ObjectStore(Location(f"s3://{bucket}/data", log.storage_options)))


@pytest.mark.more
def test_the_second_listing_is_read_side_by_side_and_shows_the_same(s3: S3Server, wide: str) -> None:
    log = s3.proxy()
    reader = reader_of(log, wide)
    first = listed(reader)
    assert [page.requests for page in first] == [1] * 7
    assert [page.is_last for page in first] == [False] * 6 + [True]
    made = len(log.requests)
    assert made == 7
    second = listed(reader)
    assert names(second) == names(first) and len(set(names(first))) == _NAMES
    assert sum(page.requests for page in second) == len(log.requests) - made <= 7 + 3
    assert max(page.requests for page in second) == 3, "three ranges of two or three pages"
    third = listed(reader)
    assert names(third) == names(first)


@pytest.mark.more
def test_it_asks_for_no_more_than_it_may(s3: S3Server, wide: str) -> None:
    log = s3.proxy()
    reader = reader_of(log, wide)
    first = listed(reader)
    reader.begin()
    pages = []
    for _ in range(20):
        before = len(log.requests)
        page = reader.read(2)
        if page is None:
            break
        pages.append(page)
        assert len(log.requests) - before == page.requests <= 2
    assert names(pages) == names(first)


@pytest.mark.more
def test_names_that_come_and_go_between_two_listings_are_there_and_not(s3: S3Server, bucket: str) -> None:
    rng, keys = Random(5), [f"data/{number:05}" for number in range(0, 9_000, 2)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda key: s3.put(bucket, key, b"x"), keys))
    log = s3.proxy()
    reader = reader_of(log, bucket)
    listed(reader)
    # Borders of ranges are among those that go.
    gone = {*keys[999::1000], *rng.sample(keys, 50)}
    new = {f"data/{number:05}" for number in rng.sample(range(1, 9_000, 2), 50)} | {"data/0", "data/99999"}
    for key in gone:
        s3.client().delete_object(Bucket=bucket, Key=key)
    for key in new:
        s3.put(bucket, key, b"x")
    for _ in range(2):
        made = len(log.requests)
        pages = listed(reader)
        assert [f"data/{name}" for name in names(pages)] == sorted({*keys, *new} - gone)
        assert sum(page.requests for page in pages) == len(log.requests) - made


@pytest.mark.more
def test_a_listing_that_fails_in_the_middle_is_no_listing(s3: S3Server, wide: str) -> None:
    proxy = s3.fault_proxy(Random(1))
    reader = PageReader(ObjectStore(Location(f"s3://{wide}/data", proxy.storage_options), max_attempts=1))
    proxy.on("LIST", skip=3).refuse()
    reader.begin()
    for _ in range(3):
        assert reader.read(1) is not None
    with pytest.raises(StorageUnavailableError):
        reader.read(1)


class Unordered:
    """A store that can begin behind any name, but does not list in the order of names."""

    lists_from_names = True

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def list_pages(self, *, after: str | None = None) -> object:
        start = 0 if after is None else self.names.index(after) + 1
        for at in range(start, max(len(self.names), start + 1), 2):
            some = self.names[at : at + 2]
            page = ListingPage.of(some, ["e"] * len(some), [1] * len(some), [_AT] * len(some), 1)
            yield replace(page, is_last=at + 2 >= len(self.names))


def test_a_store_whose_order_is_another_loses_no_name() -> None:
    ordered = [f"{number:02}" for number in range(40)]
    store = Unordered(ordered)
    reader = PageReader(store)  # type: ignore[arg-type]
    assert names(listed(reader)) == ordered
    assert len(listed(reader)) < 20, "side by side"
    store.names = [*ordered[:15], "99", *ordered[15:]]
    for _ in range(2):
        assert set(names(listed(reader))) == {*ordered, "99"}
    store.names = ordered
    assert len(listed(reader)) == 20, "not side by side any more"


def test_a_directory_is_read_page_by_page(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number)).write_bytes(b"")
    reader = PageReader(ObjectStore(Location(str(tmp_path))))
    for _ in range(2):
        assert names(listed(reader)) == [str(number) for number in range(5)]
