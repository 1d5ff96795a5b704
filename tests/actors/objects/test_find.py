"""One object is found in the version that a listing shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from actors.objects.object_store import ObjectStore
from slackwater.testing.proxies.fault_proxy import FaultProxy
from slackwater.testing.servers.s3_server import S3Server
from state.errors import AccessDeniedError
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


NAMES = ["a", "b", "b.csv", "b.csv.gz", "c/b.csv", "day=1/b c.csv", "ü.csv", "z~", "0"]


@pytest.fixture
def refusing(s3: S3Server, bucket: str) -> Iterator[FaultProxy]:
    """A proxy of a bucket with objects below `in/` whose HEAD is refused."""
    for name in NAMES:
        s3.put(bucket, f"in/{name}", name.encode())
    with closing(s3.fault_proxy(Random(1))) as proxy:
        proxy.on("HEAD").deny()
        yield proxy


def test_an_object_whose_head_is_refused_is_found_by_a_listing(refusing: FaultProxy, s3: S3Server, bucket: str) -> None:
    store, plain = (ObjectStore(Location(f"s3://{bucket}/in", each.storage_options)) for each in (refusing, s3))
    for name in NAMES:
        found, expected = store.find("s", name), plain.find("s", name, exact_time=True)
        assert found == expected is not None
    for name in ("b.cs", "b.csv.g", "c", "day=1/b", "zz", "00"):
        assert store.find("s", name) is None
    with refusing.recording() as requests:
        store.find("s", "b.csv")
    assert [each.is_list for each in requests] == [False, True]


def test_access_that_is_refused_for_everything_is_an_error(refusing: FaultProxy, bucket: str) -> None:
    refusing.on("LIST").deny()
    with pytest.raises(AccessDeniedError, match="access is denied"):
        ObjectStore(Location(f"s3://{bucket}/in", refusing.storage_options)).find("s", "a")


@pytest.mark.parametrize("path", ["gone.csv", "day=2/a.csv", "day=1"])
def test_what_is_not_there_is_not_found(location: Location, path: str) -> None:
    assert ObjectStore(location).find("s", path) is None


@pytest.mark.parametrize("name", ["x\ny.csv", "tab\t.csv", "../a.csv", "./a.csv", "a//b.csv", "..", "x\x00.csv"])
def test_a_name_that_cannot_be_read_is_found_as_a_listing_shows_it(s3: S3Server, bucket: str, name: str) -> None:
    s3.client().put_object(Bucket=bucket, Key="a.csv", Body=b"beside")
    is_there = name.endswith(("\ny.csv", "\t.csv"))  # this server has no objects of the other names
    if is_there:
        s3.client().put_object(Bucket=bucket, Key=f"in/{name}", Body=b"x")
    found = ObjectStore(Location(f"s3://{bucket}/in", s3.storage_options)).find("s", name)
    assert (found is not None) == is_there
    assert found is None or found.path == name
