"""From a faulty store a reader gets the right bytes, or an error that blames the store, in time."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pyarrow as pa
import pytest

from actors.files import FileVersion
from actors.formats.options import Csv, Json, Parquet
from actors.formats.registry import Format
from actors.objects.object_store import ObjectStore
from actors.reading.source_reader import SourceReader
from actors.rows import Offset
from actors.settings import FetchSettings, RequestSettings
from actors.sources.source import SourceDefinition
from slackwater.testing.proxies.fault_proxy import FaultProxy
from slackwater.testing.servers.s3_server import S3Server
from state.clock import SystemClock
from state.errors import StorageUnavailableError
from state.location import Location
from tests.actors.formats.written_files import write_parquet
from tests.cases import few

_KINDS = ["refuse", "cut", "reset"]


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    with closing(s3.fault_proxy(random.Random(7))) as proxy:
        yield proxy


def _content(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


def _listed(location: Location) -> list[FileVersion]:
    return [
        FileVersion("s", path, b"", etag, size, modified)
        for page in ObjectStore(location).list_pages()
        for path, etag, size, modified in page.objects()
    ]


@pytest.mark.more_after(1)
@pytest.mark.parametrize("kind", _KINDS)
def test_what_is_read_through_faults_is_what_was_written(
    s3: S3Server, bucket: str, proxy: FaultProxy, kind: str
) -> None:
    contents = {f"{number:02}": _content(2_000 + 517 * number, number) for number in range(40)}
    contents["large"] = _content(300_000, 99)
    for path, content in contents.items():
        s3.put(bucket, path, content)
    getattr(proxy.on("*", probability=0.3), kind)()
    location = Location(f"s3://{bucket}", proxy.storage_options)
    store = ObjectStore(
        location, requests=RequestSettings(whole_object_bytes=50_000, block_bytes=20_000), max_attempts=30
    )
    files = _listed(Location(f"s3://{bucket}", s3.storage_options))
    with ThreadPoolExecutor(8) as threads:
        read = dict(threads.map(lambda file: (file.path, store.open(file).stream().read()), files))
    assert read == contents
    assert len(proxy.met(kind)) >= 8


@pytest.mark.more
@pytest.mark.parametrize("kind", _KINDS)
def test_a_listing_through_faults_has_every_name_once(s3: S3Server, bucket: str, proxy: FaultProxy, kind: str) -> None:
    keys = [f"data/{number:05}" for number in range(3_300)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda key: s3.put(bucket, key, b"x"), keys))
    # The second page fails twice, and the last one once.
    getattr(proxy.on("LIST", skip=1, times=2), kind)()
    getattr(proxy.on("LIST", skip=2, times=1), kind)()
    store = ObjectStore(Location(f"s3://{bucket}/data", proxy.storage_options))
    pages = list(store.list_pages())
    assert [f"data/{path}" for page in pages for path in page.paths] == keys
    assert len(proxy.met(kind)) == 3
    if kind == "cut":
        assert sum(page.requests for page in pages) == len(proxy.requests) == 7


def test_an_empty_listing_that_broke_off_is_not_taken_for_an_empty_bucket(
    s3: S3Server, bucket: str, proxy: FaultProxy
) -> None:
    proxy.on("LIST", times=2).cut()
    (page,) = ObjectStore(Location(f"s3://{bucket}", proxy.storage_options)).list_pages()
    assert (page.paths, page.requests) == ([], 3)
    proxy.on("LIST").cut()
    with pytest.raises(StorageUnavailableError, match=f"s3://{bucket}: the store's answer broke off"):
        ObjectStore(Location(f"s3://{bucket}", proxy.storage_options), max_attempts=3).check()


def _file_of(format: Format) -> bytes:
    table = pa.table({"carrier": [str(row) for row in range(3_000)], "flight": range(3_000)})
    if isinstance(format, Parquet):
        return write_parquet(table, 500)
    if isinstance(format, Csv):
        lines = [f"{row},{row * 7}" for row in range(3_000)]
        return gzip.compress("\n".join(["carrier,flight", *lines]).encode())
    return "\n".join(f'{{"carrier": "{row}", "flight": {row}}}' for row in range(3_000)).encode()


@pytest.mark.parametrize("kind", [*_KINDS, "freeze"])
@pytest.mark.parametrize("format", few([Parquet(), Csv(), Json()], Parquet()), ids=["parquet", "csv", "json"])
def test_a_store_that_fails_for_good_is_blamed_and_the_file_is_not(
    s3: S3Server, bucket: str, proxy: FaultProxy, kind: str, format: Format
) -> None:
    content = _file_of(format)
    s3.put(bucket, "f", content)
    (file,) = _listed(Location(f"s3://{bucket}", s3.storage_options))
    location = Location(f"s3://{bucket}", {**proxy.storage_options, "read_timeout": "0.5s"})
    piece_bytes = max(2_000, len(content) // 5)
    requests = RequestSettings(
        whole_object_bytes=1, footer_bytes=piece_bytes, max_span_bytes=piece_bytes, block_bytes=piece_bytes
    )
    settings = FetchSettings(requests=requests, piece_bytes=piece_bytes, max_attempts=2)
    schema = pa.schema([("carrier", pa.string()), ("flight", pa.int64())])
    reader = SourceReader(SourceDefinition(name="s", location=location, format=format), schema, settings)
    # The first requests pass, so that the fault comes in the middle of the file.
    getattr(proxy.on("GET", skip=1), kind)()
    open_file = reader.open(file)
    clock = SystemClock()
    start_s = clock.monotonic()
    rows = 0
    with pytest.raises(StorageUnavailableError, match=f"s3://{bucket}/f"):
        last = False
        while not last:
            table, last = open_file.next_piece(schema, Offset(rows))
            rows += table.num_rows
    assert clock.monotonic() - start_s < 10
    proxy.heal()
    # A new try from the row that was reached reads the rest, and nothing is lost or doubled.
    open_file, rest, last = reader.open(file), 0, False
    while not last:
        table, last = open_file.next_piece(schema, Offset(rows + rest))
        rest += table.num_rows
    assert rows + rest == 3_000


@pytest.mark.more
@pytest.mark.parametrize("method", ["GET", "LIST"])
def test_a_frozen_store_is_given_up_in_bounded_time_by_default(
    s3: S3Server, bucket: str, proxy: FaultProxy, method: str
) -> None:
    s3.put(bucket, "f", b"1")
    (file,) = _listed(Location(f"s3://{bucket}", s3.storage_options))
    proxy.on(method).freeze()
    store = ObjectStore(Location(f"s3://{bucket}", proxy.storage_options))
    clock = SystemClock()
    start_s = clock.monotonic()
    with pytest.raises(StorageUnavailableError, match="it did not answer in time"):
        store.check() if method == "LIST" else store.open(file).stream()
    assert clock.monotonic() - start_s < 50
