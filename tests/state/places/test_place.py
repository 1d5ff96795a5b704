"""Place: spellings of one place are equal, and different places are apart."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from state.errors import SettingsError
from state.location import Location
from state.places.directory_place import DirectoryPlace
from state.places.place import Place, Relation
from tests.state.places.mounts import bind_mount

_VARIABLES = (
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_STORAGE_USE_EMULATOR",
    "AZURE_ENDPOINT",
)


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)


def path(one: str | Path, other: str | Path) -> str | None:
    return Place.of(Location(str(one))).path_to(Place.of(Location(str(other))))


def relation(one: str | Path, other: str | Path) -> Relation:
    first, second = Place.of(Location(str(one))), Place.of(Location(str(other)))
    found = first.relation(second)
    assert second.relation(first) is found.reversed, "both directions agree"
    assert first.overlaps(second) == found.overlaps == (found is not Relation.APART)
    return found


# -- disks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exists", [True, False])
def test_a_directory_is_equal_above_below_or_apart_also_before_it_exists(tmp_path: Path, exists: bool) -> None:
    if exists:
        (tmp_path / "lake" / "raw").mkdir(parents=True)
        (tmp_path / "lake2").mkdir()
    assert relation(tmp_path / "lake", tmp_path / "lake") is Relation.EQUAL
    assert relation(tmp_path / "lake", tmp_path / "lake" / "raw") is Relation.ABOVE
    assert relation(tmp_path / "lake" / "raw", tmp_path / "lake") is Relation.BELOW
    assert relation(tmp_path / "lake", tmp_path / "lake2") is Relation.APART
    assert relation("/", tmp_path) is Relation.ABOVE


@pytest.mark.parametrize(
    "text",
    [
        "{room}/lake/raw/",
        "{room}//lake/./raw",
        "file://{room}/lake/raw/",
        "FILE://{room}/lake/raw",
        "{room}/other/../lake/raw",
        "{room}/missing/../lake/raw",
        "{room}/link/raw",
        "{room}/link/../lake/raw",
        "{room}/inner/../raw",
        "{room}/chain/raw",
        "{room}/other/relative/raw",
    ],
)
def test_every_spelling_of_a_path_is_one_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "lake" / "raw" / "deep").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    (tmp_path / "chain").symlink_to(tmp_path / "link")
    (tmp_path / "other" / "relative").symlink_to("../lake")
    # `..` behind a link is the directory above its target, not above the link.
    (tmp_path / "inner").symlink_to(tmp_path / "lake" / "raw")
    raw = tmp_path / "lake" / "raw"
    spelling = text.format(room=tmp_path)
    assert relation(spelling, raw) is Relation.EQUAL
    assert relation(spelling, raw / "deep" / "new") is Relation.ABOVE
    assert relation(f"{spelling}/new", raw) is Relation.BELOW
    assert relation(f"{spelling}/new", raw / "new") is Relation.EQUAL
    assert relation(spelling, tmp_path / "other") is Relation.APART


def test_a_relative_path_and_a_home_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert relation("raw", tmp_path / "raw") is Relation.EQUAL
    assert relation("~/raw", tmp_path / "raw") is Relation.EQUAL


def test_a_link_that_leads_nowhere_is_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "new")
    assert relation(tmp_path / "link" / "a", tmp_path / "new" / "a") is Relation.EQUAL
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert relation(tmp_path / "circle", tmp_path / "new") is Relation.APART


def test_a_link_below_a_place_does_not_belong_to_it(tmp_path: Path) -> None:
    """Listings follow no link."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "link").symlink_to(tmp_path / "pub")
    assert relation(tmp_path / "raw", tmp_path / "pub") is Relation.APART
    assert relation(tmp_path / "raw", tmp_path / "raw" / "link") is Relation.APART, "a table there is in pub"


def test_a_link_that_is_made_later_changes_the_place(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    before = Place.of(Location(str(tmp_path / "pub")))
    (tmp_path / "pub").symlink_to(tmp_path / "raw")
    after = Place.of(Location(str(tmp_path / "pub")))
    assert relation(tmp_path / "pub", tmp_path / "raw") is Relation.EQUAL
    assert (before.address, after.address) == (str(tmp_path / "pub"), str(tmp_path / "raw"))
    assert str(after) == f"{tmp_path}/pub ({tmp_path}/raw)", "a message names both"


def test_a_bind_mount_is_the_directory_that_it_shows(tmp_path: Path) -> None:
    lake, shown = tmp_path / "lake", tmp_path / "shown"
    (lake / "raw" / "deep").mkdir(parents=True)
    with bind_mount(lake, shown):
        assert relation(lake, shown) is Relation.EQUAL
        assert relation(lake / "raw", shown) is Relation.BELOW
        assert relation(shown / "new", lake / "new") is Relation.EQUAL
        assert relation(shown / "new", lake) is Relation.BELOW


def test_a_bind_mount_of_a_part_is_below_the_whole(tmp_path: Path) -> None:
    lake, shown = tmp_path / "lake", tmp_path / "a name with spaces"
    (lake / "raw" / "deep").mkdir(parents=True)
    with bind_mount(lake / "raw", shown):
        assert relation(shown, lake) is Relation.BELOW, "nothing above the mount is the lake"
        assert relation(shown / "new", lake) is Relation.BELOW
        assert (path(lake, shown / "new"), path(shown, lake)) == ("raw/new", None)
        assert relation(lake / "raw" / "new", shown) is Relation.BELOW
        assert relation(lake / "other", shown) is Relation.APART


def test_a_mount_below_a_place_belongs_to_it(tmp_path: Path) -> None:
    lake, data = tmp_path / "lake", tmp_path / "data"
    (data / "raw" / "deep").mkdir(parents=True)
    with bind_mount(data, lake / "mounted"):
        assert relation(lake, data) is Relation.ABOVE, "a listing of the lake shows all of it"
        assert relation(lake, data / "raw") is Relation.ABOVE
        assert path(lake, data / "raw" / "new") == "mounted/raw/new"
        assert relation(lake / "other", data) is Relation.APART
    with bind_mount(data / "raw", lake / "mounted"):
        assert relation(lake, data / "raw") is Relation.ABOVE
        assert relation(lake, data) is Relation.CROSSING, "a part of the lake is a part of it"
        assert relation(lake, data / "other") is Relation.APART
    assert relation(lake, data) is Relation.APART


def test_a_mount_that_is_hidden_by_another_one_does_not_count(tmp_path: Path) -> None:
    one, other, point = tmp_path / "one", tmp_path / "other", tmp_path / "point"
    one.mkdir()
    other.mkdir()
    with bind_mount(one, point), bind_mount(other, point):
        assert relation(point, other) is Relation.EQUAL
        assert relation(point, one) is Relation.APART


def test_without_a_list_of_mounts_inodes_show_a_bind_mount(tmp_path: Path) -> None:
    def place(path: Path) -> Place:
        found = Place.of(Location(str(path)))
        assert isinstance(found.identity, DirectoryPlace)
        return replace(found, identity=replace(found.identity, region=None, mounted=()))

    (tmp_path / "lake" / "raw").mkdir(parents=True)
    with bind_mount(tmp_path / "lake", tmp_path / "shown"):
        assert place(tmp_path / "lake").relation(place(tmp_path / "shown")) is Relation.EQUAL
        assert place(tmp_path / "lake").relation(place(tmp_path / "shown" / "raw" / "new")) is Relation.ABOVE
        assert place(tmp_path / "lake" / "new").relation(place(tmp_path / "shown" / "new")) is Relation.EQUAL
        assert place(tmp_path / "lake" / "new").relation(place(tmp_path / "shown" / "raw")) is Relation.APART


def test_names_that_differ_in_case_are_one_place_where_the_file_system_says_so(tmp_path: Path) -> None:
    def place(path: Path) -> Place:
        found = Place.of(Location(str(path)))
        assert isinstance(found.identity, DirectoryPlace)
        assert not found.identity.ignores_case, "the disks of the tests do not ignore case"
        return replace(found, identity=replace(found.identity, ignores_case=True))

    assert relation(tmp_path / "Raw", tmp_path / "raw") is Relation.APART
    assert place(tmp_path / "Raw").relation(place(tmp_path / "raw" / "new")) is Relation.ABOVE
    assert place(tmp_path / "caf\u00e9").relation(place(tmp_path / "CAFE\u0301")) is Relation.EQUAL


@pytest.mark.skipif(os.getuid() == 0, reason="root may enter every directory")
def test_a_directory_that_may_not_be_entered_is_compared_by_its_path(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    assert relation(closed / "a", closed / "a" / "b") is Relation.ABOVE
    assert relation(closed / "a", closed / "b") is Relation.APART


# -- object stores ----------------------------------------------------------------------------------------------------


def at(url: str, **options: str) -> Place:
    return Place.of(Location(url, options))


@pytest.mark.parametrize(
    "url",
    [
        "s3://lake/a/c/",
        "S3://lake/a/c",
        "s3://LAKE/a/c",
        "s3://lake/a//c",
        "s3://lake//a/c",
        "s3://lake/a/./c",
        "s3://lake/a/b/../c",
        "s3://lake/%61/c",
        "s3://lake/a%2Fc",
        "s3://lake/a/b/%2e%2e/c",
        "s3://key@lake/a/c",
    ],
)
def test_every_spelling_of_a_prefix_is_one_place(url: str) -> None:
    assert at(url).relation(at("s3://lake/a/c")) is Relation.EQUAL
    assert at(url).relation(at("s3://lake/a")) is Relation.BELOW
    assert at(url).relation(at("s3://lake")) is Relation.BELOW
    assert at(f"{url}/new").relation(at("s3://lake/a/c")) is Relation.BELOW
    assert at(url).relation(at("s3://lake/a/cc")) is Relation.APART
    assert at(url).relation(at("s3://other/a/c")) is Relation.APART
    assert at(url).relation(at("gs://lake/a/c")) is Relation.APART


def test_a_prefix_has_upper_and_lower_case() -> None:
    assert at("s3://lake/A").relation(at("s3://lake/a")) is Relation.APART


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://localhost:9000",
        "http://127.0.0.1:9000/",
        "http://LOCALHOST:9000",
        "http://[::1]:9000",
        "http://[0:0:0:0:0:0:0:1]:9000",
        "http://127.1:9000",
        "http://0x7f000001:9000",
        "http://[::ffff:127.0.0.1]:9000",
        "http://0.0.0.0:9000",
        "https://localhost:9000",
        "http://user@localhost:9000",
        "http://lake.localhost:9000",
        "http://localhost:9000/lake",
    ],
)
def test_every_spelling_of_an_endpoint_is_one_server(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = at("s3://lake/a", endpoint="http://localhost:9000")
    for name in ("endpoint", "endpoint_url", "aws_endpoint", "AWS_ENDPOINT_URL"):
        assert here.relation(at("s3://lake/a/b", **{name: endpoint})) is Relation.ABOVE
    assert here.relation(at("s3://lake/a")) is Relation.APART, "AWS"
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert here.relation(at("s3://lake/a")) is Relation.EQUAL
    assert here.relation(at("s3://lake/a", endpoint="http://localhost:9001")) is Relation.APART
    assert here.relation(at("s3://lake/a", endpoint="http://minio:9000")) is Relation.APART


@pytest.mark.parametrize(
    ("one", "other"),
    [("http://minio", "http://minio:80"), ("https://minio.", "https://MINIO:443/"), ("http://minio", "https://minio")],
)
def test_default_ports_do_not_count(one: str, other: str) -> None:
    assert at("s3://lake/a", endpoint=one).relation(at("s3://lake/a", endpoint=other)) is Relation.EQUAL
    assert at("s3://lake/a", endpoint=one).relation(at("s3://lake/a", endpoint="http://minio:9000")) is Relation.APART


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://s3.amazonaws.com",
        "https://s3.eu-central-1.amazonaws.com",
        "https://s3-eu-west-1.amazonaws.com",
        "https://s3.dualstack.us-east-2.amazonaws.com",
        "https://lake.s3.us-east-1.amazonaws.com",
        "https://lake.vpce-1a2b-5c6d.s3.us-east-1.vpce.amazonaws.com",
    ],
)
def test_regions_of_aws_are_one_server(endpoint: str) -> None:
    assert at("s3://lake/a").relation(at("s3://lake/a", endpoint=endpoint)) is Relation.EQUAL
    china = at("s3://lake/a", endpoint="https://s3.cn-north-1.amazonaws.com.cn")
    assert china.relation(at("s3://lake/a", endpoint=endpoint)) is Relation.APART


@pytest.mark.parametrize(
    ("web", "bucket"),
    [
        ("https://lake.s3.eu-central-1.amazonaws.com/a", ("s3://lake/a", {})),
        ("https://s3.eu-central-1.amazonaws.com/lake/a", ("s3://lake/a", {})),
        ("http://127.0.0.1:9000/lake/a/", ("s3://lake/a", {"endpoint": "http://localhost:9000"})),
        ("https://storage.googleapis.com/lake/a", ("gs://lake/a", {})),
        ("https://lake.storage.googleapis.com/a", ("gs://lake/a", {})),
        ("https://sea.blob.core.windows.net/lake/a", ("az://lake/a", {"account_name": "sea"})),
    ],
)
def test_a_bucket_seen_as_a_web_server_is_one_place(web: str, bucket: tuple[str, dict[str, str]]) -> None:
    assert at(web).relation(at(bucket[0], **bucket[1])) is Relation.EQUAL
    assert at(f"{web}/b").relation(at(bucket[0], **bucket[1])) is Relation.BELOW
    assert at("https://example.com/lake/a").relation(at(bucket[0], **bucket[1])) is Relation.APART


def test_google_by_the_interface_of_s3_is_one_place() -> None:
    by_s3 = at("s3://lake/a", endpoint="https://storage.googleapis.com")
    assert by_s3.relation(at("gs://lake/a")) is Relation.EQUAL


def test_a_container_of_azure_belongs_to_its_account(monkeypatch: pytest.MonkeyPatch) -> None:
    sea = at("az://lake/a", account_name="sea")
    assert sea.relation(at("az://lake/a", account_name="ocean")) is Relation.APART
    assert sea.relation(at("az://lake/a", endpoint="https://sea.dfs.core.windows.net")) is Relation.EQUAL
    emulator = at("az://lake/a", use_emulator="true")
    assert emulator.relation(at("az://lake", endpoint="http://localhost:10000/devstoreaccount1")) is Relation.BELOW
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "sea")
    assert sea.relation(at("az://lake/a")) is Relation.EQUAL


def test_a_bucket_and_a_disk_are_apart(tmp_path: Path) -> None:
    assert at("s3://lake/a").relation(at(str(tmp_path))) is Relation.APART
    assert at("s3://lake/a", endpoint="http://localhost:9000").address == "localhost:9000/lake/a"


def test_an_endpoint_that_is_no_url_is_refused() -> None:
    with pytest.raises(SettingsError, match="the storage option endpoint is 'minio:9000'"):
        at("s3://lake/a", endpoint="minio:9000")
