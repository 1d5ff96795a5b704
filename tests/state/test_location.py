"""The URL of a location: every spelling of a place on this machine is one URL, and no URL is taken for a path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from state.errors import SettingsError
from state.location import Location


@pytest.mark.parametrize(
    "text",
    [
        "/data/lake",
        "/data/lake/",
        "/data//./lake",
        "file:///data/lake",
        "file:///data/lake/",
        "file:////data//./lake",
        "file://localhost/data/lake",
        "file://LOCALHOST/data/lake",
        "file:/data/lake",
        "FILE:///data/lake",
        "File:/data/lake",
    ],
)
def test_every_spelling_of_a_local_directory_is_one_url(text: str) -> None:
    location = Location(text)
    assert (location.url, location.path, location.is_local) == ("file:///data/lake", Path("/data/lake"), True)
    assert Location(location.url) == location, "a stored URL is read as itself"


@pytest.mark.parametrize("name", ["a%20b", "50%", "a b", "a#b", "a?b=1", "a://b", "ü", "file:"])
def test_a_name_is_literal_in_a_path_and_in_a_url(name: str) -> None:
    location = Location(f"/data/{name}")
    assert location.path == Path(f"/data/{name}")
    assert Location(location.url) == location == Location(f"file:///data/{name}") == Location("/data").child(name)
    assert Location("/x").of_lance_uri(location.lance_uri) == location


def test_a_relative_path_is_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("raw", "./raw", Path("raw")):
        assert Location(os.fspath(text)).path == tmp_path / "raw"
    assert Location("./s3:").path == tmp_path / "s3:"
    assert Location("../a://b").path == tmp_path / ".." / "a:" / "b"


@pytest.mark.parametrize("text", ["file:///", "file://", "file:/", "/"])
def test_the_root_of_the_disk(text: str) -> None:
    assert Location(text).path == Path("/")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("file://server/share/x", r"names a file of the machine 'server': write file:///share/x"),
        ("file://./x", r"names a file of the machine '.'"),
        ("file:x", r"has no absolute path"),
        ("file:", r"has no absolute path"),
        ("file://localhost", r"has no absolute path"),
        ("s3:/lake/root", r"has no `//` after s3:; write s3://... or ./s3:/lake/root"),
        ("S3:lake", r"write s3://"),
        ("https:/host/x", r"write https://"),
        ("ftp://host/x", "FTP servers are not read"),
        ("s3:///root", r"s3:// needs a bucket"),
    ],
)
def test_a_url_is_never_taken_for_a_relative_path(text: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        Location(text)


def test_a_url_of_a_store_has_a_lower_case_scheme_and_no_secret() -> None:
    assert Location("S3://user:key@Lake/own/?x=1#y").url == "s3://Lake/own"
