"""A store that lists ETags without quotes: its objects have the versions of any other store, and can be read."""

from __future__ import annotations

from actors.objects.object_changes import ObjectChanges
from actors.objects.object_store import ObjectStore
from slackwater.testing.servers.s3_server import S3Server
from state.location import Location


def test_a_listing_and_a_head_without_quotes_show_the_same_version(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "raw/a.csv", b"n\n1\n")
    plain = ObjectStore(Location(f"s3://{bucket}/raw", s3.faithless_proxy(strips_quotes=True).storage_options))
    quoted = ObjectStore(s3.location(bucket, "raw"))
    forms = [store.find("s", "a.csv", exact_time=exact) for store in (plain, quoted) for exact in (False, True)]
    assert all(each is not None for each in forms)
    assert len({(each.version, each.etag) for each in forms if each is not None}) == 1
    listed = [page.etags for store in (plain, quoted) for page in store.list_pages()]
    assert listed[0] == listed[1] == [forms[0].etag if forms[0] else ""]


def test_an_object_is_read_and_deleted_by_an_etag_without_quotes(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "raw/a.csv", b"n\n1\n")
    location = Location(f"s3://{bucket}/raw", s3.faithless_proxy(strips_quotes=True).storage_options)
    store = ObjectStore(location)
    file = store.find("s", "a.csv")
    assert file is not None
    assert store.open(file).head(10) == b"n\n1\n"
    ObjectChanges(location).delete(file)
    assert store.find("s", "a.csv") is None
