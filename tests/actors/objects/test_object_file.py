"""One version of one object: as few requests as possible, counted exactly, and never two versions mixed."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pytest

from actors.file_errors import ObjectChanged, ObjectVanished, UnreadableFile
from actors.files import FileVersion
from actors.objects.object_file import ObjectFile
from actors.objects.object_store import ObjectStore
from actors.settings import RequestSettings
from slackwater.testing.proxies.request_log import RequestLog
from slackwater.testing.servers.s3_server import S3Server
from state.errors import StorageUnavailableError
from state.location import Location

_BLOCK = 1_000


def _listed(store: ObjectStore, path: str) -> FileVersion:
    for page in store.list_pages():
        if path in page.paths:
            at = page.paths.index(path)
            return FileVersion("s", path, b"", page.etags[at], page.sizes[at], page.last_modified[at])
    raise LookupError(path)


def _requests(whole_object_bytes: int) -> RequestSettings:
    return RequestSettings(
        whole_object_bytes=whole_object_bytes, max_gap_bytes=_BLOCK, max_span_bytes=4 * _BLOCK, block_bytes=_BLOCK
    )


def _open(location: Location, path: str, whole_object_bytes: int = _BLOCK) -> ObjectFile:
    store = ObjectStore(location, requests=_requests(whole_object_bytes))
    return store.open(_listed(store, path))


def _content(size: int) -> bytes:
    return bytes(number * 7 % 251 for number in range(size))


def _gets(log: RequestLog, path: str) -> int:
    assert not log.of("HEAD", path)
    return len(log.of("GET", path))


@pytest.mark.parametrize("size", [0, 1, _BLOCK])
def test_a_small_object_is_one_get_however_it_is_read(s3: S3Server, bucket: str, size: int) -> None:
    s3.put(bucket, "a", _content(size))
    log = s3.proxy()
    file = _open(Location(f"s3://{bucket}", log.storage_options), "a")
    assert file.requests == 0
    for _ in range(3):
        assert file.stream().read() == _content(size)
    assert file.head(4) == _content(size)[:4]
    assert (file.requests, file.bytes_read) == (1 if size else 0, size)
    assert _gets(log, "a") == (1 if size else 0)


def test_a_small_object_that_was_asked_for_is_one_get(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "a", _content(_BLOCK))
    log = s3.proxy()
    file = _open(Location(f"s3://{bucket}", log.storage_options), "a")
    for _ in range(2):
        file.ask()
    assert file.stream().read() == _content(_BLOCK)
    assert file.requests == _gets(log, "a") == 1


def test_the_error_of_an_object_that_was_asked_for_comes_with_the_reading_and_costs_one_get(
    s3: S3Server, bucket: str
) -> None:
    s3.put(bucket, "a", b"123")
    file = _open(s3.location(bucket), "a")
    s3.client().delete_object(Bucket=bucket, Key="a")
    file.ask()
    file.settle()
    with pytest.raises(ObjectVanished, match="/a is no longer there"):
        file.stream()
    assert file.requests == 1


@pytest.mark.parametrize("size", [_BLOCK + 1, 2 * _BLOCK - 1, 2 * _BLOCK, 3_500, 10_007])
def test_a_large_object_is_read_by_blocks_each_once(s3: S3Server, bucket: str, size: int) -> None:
    s3.put(bucket, "a", _content(size))
    log = s3.proxy()
    file = _open(Location(f"s3://{bucket}", log.storage_options), "a")
    stream = file.stream()
    read = b"".join(iter(lambda: stream.read(333), b""))
    assert read == _content(size)
    assert file.requests == size // _BLOCK == _gets(log, "a")
    assert file.bytes_read == size


def test_the_end_of_a_large_object_is_one_request(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "a", _content(5 * _BLOCK + 1))
    file = _open(s3.location(bucket), "a")
    stream = file.stream()
    stream.seek(-_BLOCK, os.SEEK_END)
    assert stream.read() == _content(5 * _BLOCK + 1)[-_BLOCK:]
    assert file.requests == 1


def test_the_start_of_a_large_object_is_one_request_and_is_kept(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "a", _content(8 * _BLOCK))
    file = _open(s3.location(bucket), "a")
    assert file.head(4) == _content(4) and file.stream().read(_BLOCK) == _content(_BLOCK)
    assert file.requests == 1


def test_ranges_that_are_close_are_one_request_and_what_lies_between_is_not_asked_for_again(
    s3: S3Server, bucket: str
) -> None:
    size, content = 20 * _BLOCK, _content(20 * _BLOCK)
    s3.put(bucket, "a", content)
    log = s3.proxy()
    file = _open(Location(f"s3://{bucket}", log.storage_options), "a")
    fetched = file.fetch([(5_000, 5_400), (100, 300), (6_000, 7_000), (12_000, 18_500)])
    stream = fetched.stream()
    for start, end in [(100, 300), (5_000, 7_000), (12_000, 18_500), (5_400, 6_000)]:
        stream.seek(start)
        assert stream.read(end - start) == content[start:end]
    assert (file.requests, _gets(log, "a")) == (4, 4), "one of four blocks at most, gaps of at most one block"
    assert file.bytes_read == 200 + 2_000 + 6_500
    assert fetched.read_at(0, size) == content, "the rest is asked for"
    assert file.bytes_read == size


def test_ranges_outside_of_the_object_are_unreadable(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "a", _content(5_000))
    file = _open(s3.location(bucket), "a")
    for wanted in [(-1, 5), (4_000, 5_001), (7, 5)]:
        with pytest.raises(UnreadableFile, match="bytes outside of its 5000 bytes"):
            file.fetch([wanted])
    assert file.requests == 0


def test_what_was_asked_for_and_not_read_is_in_the_cost_once_it_is_settled(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "a", _content(40 * _BLOCK))
    log = s3.proxy()
    file = _open(Location(f"s3://{bucket}", log.storage_options), "a")
    file.fetch([(start, start + 10) for start in range(0, 40_000, 4_000)])
    file.settle()
    assert file.requests == _gets(log, "a") <= 10
    assert file.bytes_read == 10 * file.requests


@pytest.mark.parametrize("whole_object_bytes", [_BLOCK, 100 * _BLOCK])
@pytest.mark.parametrize("place", ["s3", "local"])
def test_a_changed_object_is_noticed(
    s3: S3Server, bucket: str, tmp_path: Path, whole_object_bytes: int, place: str
) -> None:
    location = s3.location(bucket) if place == "s3" else Location(str(tmp_path))

    def write(content: bytes) -> None:
        if place == "s3":
            s3.put(bucket, "a", content)
        else:
            (tmp_path / "a").write_bytes(content)

    write(_content(5_000))
    file = _open(location, "a", whole_object_bytes)
    half_read = _open(location, "a")
    assert half_read.stream().read(10) == _content(10)
    write(_content(5_001)[1:])
    for _ in range(2):
        with pytest.raises(ObjectChanged, match="/a has changed since it was listed"):
            file.stream().read()
    assert file.bytes_read == 0 and file.requests == 2
    stream = half_read.stream()
    stream.seek(4_000)
    with pytest.raises(ObjectChanged):
        stream.read(10)


@pytest.mark.parametrize("place", ["s3", "local"])
def test_a_vanished_object_is_noticed(s3: S3Server, bucket: str, tmp_path: Path, place: str) -> None:
    location = s3.location(bucket) if place == "s3" else Location(str(tmp_path))
    (tmp_path / "a").write_bytes(b"123")
    s3.put(bucket, "a", b"123")
    file = _open(location, "a")
    (tmp_path / "a").unlink()
    s3.client().delete_object(Bucket=bucket, Key="a")
    with pytest.raises(ObjectVanished, match="/a is no longer there"):
        file.stream()
    assert (file.requests, file.bytes_read) == (1, 0)


def test_a_store_that_dies_under_a_reader_is_unavailable_and_says_nothing_about_the_file(
    s3: S3Server, bucket: str
) -> None:
    s3.put(bucket, "a", gzip.compress(_content(100_000), compresslevel=0))
    log = s3.proxy()
    location = Location(f"s3://{bucket}", log.storage_options)
    store = ObjectStore(location, requests=_requests(_BLOCK), max_attempts=1)
    file = store.open(_listed(store, "a"))
    assert file.head(2) == b"\x1f\x8b"
    text = pa.CompressedInputStream(file.stream(), "gzip")
    log.close()
    with pytest.raises(StorageUnavailableError, match=f"s3://{bucket}/a"):
        text.read()
