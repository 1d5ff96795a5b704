"""A source over HTTP, from a server that speaks WebDAV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from actors.file_errors import ObjectChanged, ObjectVanished
from actors.files import FileVersion
from actors.objects.object_store import ObjectStore
from slackwater.testing.servers.s3_server import S3Server


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with S3Server(webdav=True) as server:
        yield server


@pytest.mark.more
def test_files_over_http_are_listed_and_read_as_those_in_the_bucket_behind_it(server: S3Server) -> None:
    bucket = server.create_bucket("shared")
    names = [f"day={number % 3}/{number:04}.csv" for number in range(1_200)] + ["a b+c.csv"]
    for name in names:
        server.put(bucket, f"in/{name}", name.encode())
    server.put(bucket, "elsewhere", b"x")
    store = ObjectStore(server.webdav_location(bucket, "in"))
    pages = list(store.list_pages())
    files = {
        path: FileVersion("s", path, b"", etag, size, modified)
        for page in pages
        for path, etag, size, modified in page.objects()
    }
    assert sorted(files) == sorted(names) and pages[-1].is_last
    for path in ("day=2/0002.csv", "a b+c.csv"):
        assert store.open(files[path]).stream().read() == path.encode()
    with pytest.raises(ObjectVanished):
        store.open(replace(files["day=0/0000.csv"], path="day=0/gone.csv")).stream().read()
    earlier = files["day=0/0000.csv"].last_modified - timedelta(hours=1)
    with pytest.raises(ObjectChanged):
        store.open(replace(files["day=0/0000.csv"], last_modified=earlier)).stream().read()
