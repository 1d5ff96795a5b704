"""A listing is lazy, complete, and says what it cost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

import pytest

from actors.object_store import ListingPage, ObjectStore
from slackwater.testing import S3Server
from state.errors import BucketNotFoundError
from state.location import Location


def _fill(s3: S3Server, bucket: str, keys: list[str]) -> None:
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda key: s3.put(bucket, key, key.encode()), keys))


def _paths(pages: list[ListingPage]) -> list[str]:
    return [path for page in pages for path in page.paths]


def test_each_page_is_one_request_made_when_the_one_before_is_taken(s3: S3Server, bucket: str) -> None:
    keys = [f"data/{number:05}" for number in range(2_300)]
    _fill(s3, bucket, [*keys, "other/x"])
    log = s3.proxy()
    pages = ObjectStore(Location(f"s3://{bucket}/data", log.storage_options)).list_pages()
    taken = []
    for expected_requests in (1, 2, 3):
        taken.append(next(pages))
        assert len(log.requests) == expected_requests
    assert next(pages, None) is None
    assert len(log.requests) == 3 and all(request.is_list for request in log.requests)
    assert [page.requests for page in taken] == [1, 1, 1]
    assert [len(page.paths) for page in taken] == [1_000, 1_000, 300]
    assert _paths(taken) == [key.removeprefix("data/") for key in keys]
    assert set(taken[0].sizes) == {len("data/00000")}


def test_columns_belong_together(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "a/ü x+%20#?.csv", b"12345")
    s3.put(bucket, "b", b"1")
    page = next(ObjectStore(s3.location(bucket)).list_pages())
    objects = s3.client().list_objects_v2(Bucket=bucket)["Contents"]
    assert page.paths == [entry["Key"] for entry in objects]
    assert page.sizes == [5, 1]
    assert page.etags == [entry["ETag"] for entry in objects]
    assert page.last_modified == [entry["LastModified"] for entry in objects]


def test_an_empty_listing_is_one_empty_page_of_one_request(s3: S3Server, bucket: str) -> None:
    pages = list(ObjectStore(s3.location(bucket, "nothing/here")).list_pages())
    assert [(page.paths, page.requests) for page in pages] == [([], 1)]


def test_objects_that_stand_for_directories_are_left_out(s3: S3Server, bucket: str) -> None:
    for key in ("data/", "data/day=1/"):
        s3.client().put_object(Bucket=bucket, Key=key)
    _fill(s3, bucket, ["data/day=1/a", "data/empty"])
    s3.put(bucket, "data/zero", b"")
    pages = list(ObjectStore(s3.location(bucket, "data")).list_pages())
    assert _paths(pages) == ["day=1/a", "empty", "zero"]


def test_a_local_directory_is_listed_like_a_bucket(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "a b.csv").write_bytes(b"123")
    (tmp_path / "c%20d").write_bytes(b"")
    pages = list(ObjectStore(Location(str(tmp_path))).list_pages())
    assert sorted(_paths(pages)) == ["c%20d", "day=1/a b.csv"]
    assert sorted(pages[0].sizes) == [0, 3]
    assert all(pages[0].etags)
    changed = datetime.fromtimestamp((tmp_path / "c%20d").stat().st_mtime, timezone.utc)
    listed = pages[0].last_modified[pages[0].paths.index("c%20d")]
    assert abs((listed - changed).total_seconds()) < 0.001


def test_a_directory_that_goes_away_is_noticed_and_not_listed_as_empty(tmp_path: Path) -> None:
    directory = tmp_path / "in"
    directory.mkdir()
    store = ObjectStore(Location(str(directory)))
    store.check()
    directory.rmdir()
    with pytest.raises(BucketNotFoundError, match="no such directory"):
        next(store.list_pages())


def test_a_directory_is_listed_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("m", "z", "a/x", "b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (page,) = ObjectStore(Location(str(tmp_path))).list_pages()
    assert page.paths == ["a/x", "b", "m", "z"]
    assert page.sizes == [1, 1, 1, 1]
