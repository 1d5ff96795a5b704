"""One object is found in the version that a listing shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.objects.object_store import ObjectStore
from slackwater.testing.servers.s3_server import S3Server
from state.location import Location
from state.tables.fingerprint import version_fingerprint


@pytest.fixture(params=["local", "s3"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    paths = ("a.csv", "day=1/b c.csv", "day=1/b")
    if request.param == "local":
        for path in paths:
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(path)
        return Location(str(tmp_path))
    s3, bucket = request.getfixturevalue("s3"), request.getfixturevalue("bucket")
    assert isinstance(s3, S3Server)
    for path in paths:
        s3.put(bucket, f"in/{path}", path.encode())
    return Location(f"s3://{bucket}/in", s3.storage_options)


def test_an_object_has_the_version_of_its_listing(location: Location) -> None:
    store = ObjectStore(location)
    listed = {each[0]: each[1:] for page in store.list_pages() for each in page.objects()}
    assert len(listed) == 3
    for path, (etag, size, modified) in listed.items():
        found = store.find("s", path)
        assert found is not None and found.path == path
        assert (found.etag, found.size, found.last_modified) == (etag, size, modified)
        assert found.version == version_fingerprint(etag, size, modified)


@pytest.mark.parametrize("path", ["gone.csv", "day=2/a.csv", "day=1"])
def test_what_is_not_there_is_not_found(location: Location, path: str) -> None:
    assert ObjectStore(location).find("s", path) is None
