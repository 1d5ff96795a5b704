"""Tests of listings: lazy, complete, with their cost."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import obstore
import pyarrow as pa
import pytest
from obstore.store import LocalStore

from actors.file_errors import UnreadableFile
from actors.files import FileVersion
from actors.objects.listing_page import ListingPage
from actors.objects.local_listing import MOST_LEVELS
from actors.objects.object_store import ObjectStore
from actors.protocol.messages import NewFiles
from slackwater.testing.servers.s3_server import S3Server
from state.errors import AccessDeniedError, BucketNotFoundError
from state.location import Location
from tests.actors.flow import AT, INITIAL, lister, sent


def _fill(s3: S3Server, bucket: str, keys: list[str]) -> None:
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda key: s3.put(bucket, key, key.encode()), keys))


def _paths(pages: list[ListingPage]) -> list[str]:
    return [path for page in pages for path in page.paths]


@pytest.mark.more
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
    changed = datetime.fromtimestamp((tmp_path / "c%20d").stat().st_mtime, UTC)
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


_ODD_NAMES = ["a b.csv", "%41.csv", "#1.csv", "x+y&z=1.csv", "ü/ñ.csv", "🌊.csv", "c%2Fd.csv", "e?f.csv"]


def test_odd_names_are_listed_as_they_are_and_can_be_read(s3: S3Server, bucket: str) -> None:
    _fill(s3, bucket, [f"data/{name}" for name in _ODD_NAMES])
    store = ObjectStore(s3.location(bucket, "data"))
    files = [
        FileVersion("s", path, b"", etag, size, modified)
        for page in store.list_pages()
        for path, etag, size, modified in page.objects()
    ]
    assert sorted(file.path for file in files) == sorted(_ODD_NAMES)
    assert all(store.open(file).stream().read() == f"data/{file.path}".encode() for file in files)


@pytest.mark.more
def test_names_that_no_client_takes_are_listed_and_cannot_be_read(s3: S3Server, bucket: str) -> None:
    keys = [f"data/{number:04}" for number in range(2_100)]
    odd = [f"data/{name}" for name in ("0000\nx", "0999\t", "2099\r\x7f")]
    _fill(s3, bucket, keys)
    for key in [*odd, "data/2099y/"]:
        s3.client().put_object(Bucket=bucket, Key=key, Body=b"" if key.endswith("/") else b"x")
    log = s3.proxy()
    store = ObjectStore(Location(f"s3://{bucket}/data", log.storage_options))
    pages = list(store.list_pages())
    assert _paths(pages) == sorted(key.removeprefix("data/") for key in (*keys, *odd))
    assert sum(page.requests for page in pages) == len(log.requests)
    assert [page.is_last for page in pages] == [False, False, True]
    objects = {path: (etag, size, modified) for page in pages for path, etag, size, modified in page.objects()}
    with pytest.raises(UnreadableFile, match="its name has control characters"):
        store.open(FileVersion("s", "0999\t", b"", *objects["0999\t"])).stream().read()
    assert store.open(FileVersion("s", "0999", b"", *objects["0999"])).stream().read() == b"data/0999"


def test_an_object_that_stands_for_an_empty_directory_costs_no_request_to_read(s3: S3Server, bucket: str) -> None:
    s3.client().put_object(Bucket=bucket, Key="data/day=1/")
    log = s3.proxy()
    store = ObjectStore(Location(f"s3://{bucket}/data", log.storage_options))
    for path, etag, size, modified in [each for page in store.list_pages() for each in page.objects()]:
        assert (path, size) == ("day=1", 0)
        assert store.open(FileVersion("s", path, b"", etag, size, modified)).stream().read() == b""
    assert all(request.is_list for request in log.requests)


def test_a_local_listing_is_that_of_obstore(tmp_path: Path) -> None:
    for path in ("in/b/x", "in/b-c/x", "in/b.csv", "in/é ü/a%20#c+d.csv", "in/empty", "in/only/dirs/z"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(path.encode())
    root = tmp_path / "in"
    (root / "empty").write_bytes(b"")
    expected = {}
    for batch in obstore.list(LocalStore(root), return_arrow=True):
        for row in pa.record_batch(batch).to_pylist():
            expected[row["path"]] = (row["e_tag"].strip('"'), row["size"], row["last_modified"])
    pages = list(ObjectStore(Location(str(root))).list_pages())
    listed = {}
    for page in pages:
        for path, etag, size, last_modified in page.objects():
            # Behind the last dash is the birth time.
            listed[path] = (etag.strip('"').rpartition("-")[0], size, last_modified)
    assert listed == expected
    assert _paths(pages) == sorted(expected), "in the order of a bucket"
    assert "b-c/x" < "b.csv" < "b/x"


def test_local_names_that_cannot_be_read_are_told_and_end_no_listing(tmp_path: Path) -> None:
    for name in (b"a.csv", b"new\nline.csv", b"b\x7f.csv", b"not utf-8 \xff.csv", b"being written#12", b"z.csv"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"1")
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/directory \xfe"))
    directory.mkdir()
    (directory / "inside.csv").write_bytes(b"1")
    (page,) = ObjectStore(Location(str(tmp_path))).list_pages()
    assert page.paths == ["a.csv", "z.csv"]
    assert {name.reason for name in page.skipped} == {"its name has characters that cannot be read; rename it"}
    assert sorted(name.path for name in page.skipped) == [
        "b\\x7f.csv",
        "being written#12",
        "directory \\udcfe",
        "new\\nline.csv",
        "not utf-8 \\udcff.csv",
    ]


def test_no_link_is_followed_so_none_leads_out_or_multiplies_a_directory(tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "a").mkdir(parents=True)
    (source / "a" / "x").write_bytes(b"1")
    (tmp_path / "outside").write_bytes(b"1")
    links = {"a/up": "..", "a/x2": "x", "b": "a", "broken": "nowhere", "out": str(tmp_path), "secret": "../outside"}
    for name, target in links.items():
        (source / name).symlink_to(target)
    (page,) = ObjectStore(Location(str(source))).list_pages()
    assert page.paths == ["a/x"]
    assert sorted(name.path for name in page.skipped) == sorted(links)
    assert all("it is a symbolic link" in name.reason for name in page.skipped)


def test_a_source_may_itself_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_bytes(b"1")
    (tmp_path / "link").symlink_to("data")
    store = ObjectStore(Location(str(tmp_path / "link")))
    (page,) = store.list_pages()
    found = store.find("s", "x")
    assert page.paths == ["x"] and found is not None and store.open(found).stream().read() == b"1"


def test_directories_below_the_limit_of_depth_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    deepest = tmp_path.joinpath(*["d"] * MOST_LEVELS)
    (deepest / "d" / "d").mkdir(parents=True)
    for directory in (deepest, deepest / "d", deepest / "d" / "d"):
        (directory / "x").write_bytes(b"1")
    (page,) = ObjectStore(Location(str(tmp_path))).list_pages()
    assert page.paths == ["a", "d/" * MOST_LEVELS + "x"]
    (skipped,) = page.skipped
    assert skipped.path == "/".join(["d"] * (MOST_LEVELS + 1)) and "more than 64 directories" in skipped.reason


def test_paths_longer_than_the_system_takes_at_once_are_listed_and_read(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("x" * 200, dir_fd=directory)
        below = os.open("x" * 200, os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    with open(os.open("a", os.O_WRONLY | os.O_CREAT, dir_fd=directory), "wb") as file:
        file.write(b"1")
    os.close(directory)
    store = ObjectStore(Location(str(tmp_path)))
    (page,) = store.list_pages()
    found = store.find("s", page.paths[0])
    assert found is not None and store.open(found).stream().read() == b"1"


def test_a_large_directory_is_listed_page_by_page(tmp_path: Path) -> None:
    for number in range(1_001):
        (tmp_path / f"{number:04}").write_bytes(b"")
    pages = list(ObjectStore(Location(str(tmp_path))).list_pages())
    assert [len(page.paths) for page in pages] == [1_000, 1]
    assert _paths(pages) == [f"{number:04}" for number in range(1_001)]


def test_a_directory_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    (tmp_path / "secret").mkdir(mode=0)
    with pytest.raises(AccessDeniedError, match=str(tmp_path)):
        ObjectStore(Location(str(tmp_path))).check()


def test_late_back_dated_and_out_of_order_names_are_found(s3: S3Server, bucket: str) -> None:
    """The list step on a real bucket: each file is handed on once, in whatever order files come."""
    store = ObjectStore(s3.location(bucket, "data"))
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    found: list[str] = []
    arrivals = [["m/2026-02", "m/2026-05"], ["m/2026-01", "a", "z"], [], ["m/2026-03", "m/2026-02x"], ["n"]]
    for number, names in enumerate(arrivals):
        for name in names:
            s3.put(bucket, f"data/{name}", name.encode())
        instructions = executor.on_time(10.0 * number)
        for page in store.list_pages():
            instructions += executor.on_page(page, 10.0 * number)
        executor.on_listing_end(10.0 * number, AT)
        new = [file.path for message in sent(instructions) if isinstance(message, NewFiles) for file in message.files]
        assert sorted(new) == sorted(names)
        found += new
    assert len(found) == len(set(found)) == 8
