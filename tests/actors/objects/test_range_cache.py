from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from actors.files import FileVersion
from actors.objects.object_store import ObjectStore
from actors.objects.range_cache import RangeCache
from actors.settings import RequestSettings
from slackwater.testing.servers.s3_server import S3Server
from state.location import Location

_URL, _ETAG = "s3://bucket/file", '"1"'


def put(cache: RangeCache, start: int, nbytes: int = 100) -> None:
    cache.put(_URL, _ETAG, (start, start + nbytes), pa.py_buffer(bytes([start % 251]) * nbytes))


def has(cache: RangeCache, start: int, nbytes: int = 100) -> bool:
    content = cache.get(_URL, _ETAG, (start, start + nbytes))
    assert content is None or content.to_pybytes() == bytes([start % 251]) * nbytes
    return content is not None


def test_what_was_not_used_for_longest_goes_when_there_is_no_room(tmp_path: Path) -> None:
    cache = RangeCache(tmp_path / "cache", 250)
    put(cache, 1)
    put(cache, 2)
    assert has(cache, 1)
    put(cache, 3)
    assert [has(cache, start) for start in (1, 2, 3)] == [True, False, True]
    assert cache.nbytes == 200 == sum(file.stat().st_size for file in (tmp_path / "cache").iterdir())
    put(cache, 4, 251)
    assert not has(cache, 4, 251) and has(cache, 1), "what never fits displaces nothing"


def test_another_process_goes_on_with_what_is_there(tmp_path: Path) -> None:
    put(RangeCache(tmp_path, 250), 1)
    (file,) = tmp_path.iterdir()
    half = tmp_path / f"{file.name}-2.partial"
    half.write_bytes(b"half")
    again = RangeCache(tmp_path, 250)
    assert has(again, 1) and again.nbytes == 100
    assert not half.exists()
    assert RangeCache(tmp_path, 99).nbytes == 0


def test_files_of_others_in_its_directory_stay(tmp_path: Path) -> None:
    put(RangeCache(tmp_path / "cache", 250), 1)
    (entry,) = (tmp_path / "cache").iterdir()
    users = tmp_path / "users"
    users.mkdir()
    names = ["orders.csv", "download.partial", "0" * 40, f"{'0' * 40}.range.bak", f"{'1' * 40}-2.partial"]
    for name in names:
        (tmp_path / "cache" / name).write_bytes(bytes(300))
    (users / "file").write_bytes(bytes(300))
    (tmp_path / "cache" / f"{'2' * 40}.range").symlink_to(users / "file")
    (tmp_path / "cache" / f"{'3' * 40}.range").mkdir()
    (tmp_path / "cache" / f"{'4' * 40}.range-1.partial").symlink_to(users / "file")
    cache = RangeCache(tmp_path / "cache", 250)
    assert cache.nbytes == 100, "only entries count"
    cache.resize(0)
    assert not entry.exists()
    assert len(list((tmp_path / "cache").iterdir())) == len(names) + 3
    assert (users / "file").stat().st_size == 300


def test_an_entry_that_others_replaced_by_a_link_is_not_written_through(tmp_path: Path) -> None:
    cache = RangeCache(tmp_path / "cache", 250)
    put(cache, 1)
    (entry,) = (tmp_path / "cache").iterdir()
    (tmp_path / "users").write_bytes(b"user")
    entry.unlink()
    entry.symlink_to(tmp_path / "users")
    assert not has(cache, 1)
    put(cache, 1)
    assert (tmp_path / "users").read_bytes() == b"user" and entry.is_symlink()


def test_another_version_or_range_is_another_content(tmp_path: Path) -> None:
    cache = RangeCache(tmp_path, 1_000)
    put(cache, 1)
    assert cache.get(_URL, '"2"', (1, 101)) is None
    assert cache.get(_URL, _ETAG, (1, 100)) is None
    assert cache.get(f"{_URL}2", _ETAG, (1, 101)) is None


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_what_is_damaged_is_as_if_it_had_never_been_kept(tmp_path: Path, damage: str) -> None:
    cache = RangeCache(tmp_path, 1_000)
    put(cache, 1)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"short") if damage == "cut" else file.unlink()
    assert not has(cache, 1) and cache.nbytes == 0
    put(cache, 1)
    assert has(cache, 1)


@pytest.mark.parametrize("whole_object_bytes", [100, 100_000])
def test_a_file_that_is_read_again_costs_no_request(
    s3: S3Server, bucket: str, tmp_path: Path, whole_object_bytes: int
) -> None:
    content = bytes(number % 251 for number in range(20_000))
    s3.put(bucket, "file", content)
    log = s3.proxy()
    requests = RequestSettings(whole_object_bytes=whole_object_bytes, block_bytes=4_000)
    cache = RangeCache(tmp_path, 100_000)
    costs = []
    for _ in range(2):
        store = ObjectStore(Location(f"s3://{bucket}", log.storage_options), requests=requests, cache=cache)
        page = next(store.list_pages())
        ((path, etag, size, at),) = page.objects()
        file = store.open(FileVersion("s", path, b"", etag, size, at))
        with log.recording() as seen:
            assert file.stream().read() == content
            assert bytes(file.fetch([(5, 900)]).read_at(5, 895)) == content[5:900]
        assert len(seen) == file.requests
        costs.append(file.requests)
    assert costs[0] > 0 and costs[1] == 0
