"""The marker of a root or a table: written once, never over another object."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import obstore
import pytest

from slackwater.testing.servers.s3_server import S3Server
from state.location import Location
from state.objects.object_client import object_client
from state.places.marker import MARKER, Marker, read_marker, write_marker

ROOT = Marker("root", "flights", "/lake/root", "", "0.1.0")
TABLE = Marker("table", "flights", "/lake/root", "by_carrier", "0.1.0")


@pytest.fixture(params=["disk", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "disk":
        return Location(str(tmp_path / "new" / "place"))
    s3: S3Server = request.getfixturevalue("s3")
    return Location(f"s3://{request.getfixturevalue('bucket')}/place", s3.storage_options)


def test_the_first_marker_stays(place: Location) -> None:
    assert read_marker(place) is None
    write_marker(place, ROOT)
    assert read_marker(place) == ROOT
    write_marker(place, TABLE)
    assert read_marker(place) == ROOT


def test_a_marker_of_an_earlier_version_gets_the_identity_of_its_root_and_of_no_other(place: Location) -> None:
    write_marker(place, TABLE)
    write_marker(place, replace(TABLE, root="/lake/other", identity="other"))
    assert read_marker(place) == TABLE
    now = replace(TABLE, version="0.2.0", identity="one")
    write_marker(place, now)
    write_marker(place, replace(TABLE, identity="two"))
    assert read_marker(place) == now


def test_an_object_of_another_program_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text("mine")
    write_marker(Location(str(tmp_path)), ROOT)
    assert (tmp_path / MARKER).read_text() == "mine"
    assert read_marker(Location(str(tmp_path))) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"kind": "cat"}', '{"kind": "root"}', "\udcff"])
def test_other_content_is_no_marker(content: str) -> None:
    assert Marker.of_json(content.encode(errors="surrogateescape")) is None


def test_a_marker_has_words_for_messages() -> None:
    assert ROOT.words == "the root of pipeline flights"
    assert TABLE.words == "the published table of view by_carrier of /lake/root"
    assert Marker.of_json(TABLE.to_json()) == TABLE


@pytest.mark.timeout(120)  # without the promise the reader waits for good
def test_a_marker_without_end_is_no_marker(tmp_path: Path) -> None:
    path = tmp_path / MARKER
    os.mkfifo(path)
    assert read_marker(Location(str(tmp_path))) is None
    for target in ("/dev/zero", "missing", MARKER):
        path.unlink()
        path.symlink_to(target)
        assert read_marker(Location(str(tmp_path))) is None


def test_a_marker_is_small_and_printable(place: Location) -> None:
    client = object_client(place)
    text = json.dumps({**asdict(TABLE), "view": "\x1b]0;title\x07" + "v" * 5_000})
    obstore.put(client, MARKER, text.encode())
    found = read_marker(place)
    assert found is not None and r" \x1b]0;title\x07vvv" in found.words and len(found.words) < 1_100
    for content in (text.encode() + b" " * 65_536, b"[" * 60_000):
        obstore.put(client, MARKER, content)
        assert read_marker(place) is None
