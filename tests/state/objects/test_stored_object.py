"""Small files of a local place: only regular files are read, and no pipe keeps a reader waiting."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import obstore
import pytest

import slackwater as sw
from slackwater.plugins.publish.parquet_files import MANIFEST
from slackwater.plugins.publish.publisher import opened_table
from slackwater.testing.servers.s3_server import S3Server
from state.capabilities.store_record import NAME, read_record
from state.clock import SystemClock
from state.errors import DamagedStoreError
from state.location import Location
from state.objects import stored_object
from state.objects.etag import normal_etag
from state.objects.object_client import object_client
from state.objects.stored_object import NotARegularFileError, ObjectTooLargeError, read_object
from state.ownership.command_inbox import CommandInbox
from state.ownership.owner import read_owner


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


KINDS: dict[str, Callable[[Path], None]] = {
    "named pipe": lambda path: os.mkfifo(path),
    "socket": make_socket,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "directory": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    place = Location(str(tmp_path))
    KINDS[kind](tmp_path / "a.json")
    with pytest.raises(NotARegularFileError, match=rf"/a.json is a {kind}, not a regular file"):
        read_object(object_client(place), place, "a.json")


def test_a_file_has_the_version_that_obstore_gives_it(tmp_path: Path) -> None:
    place = Location(str(tmp_path))
    client = object_client(place)
    obstore.put(client, "a.json", b"abc")
    found = read_object(client, place, "a.json")
    assert found.content == b"abc"
    assert found.version == {"e_tag": normal_etag(obstore.head(client, "a.json")["e_tag"]), "version": None}


@pytest.mark.parametrize("name", ["../secret", "a/../../secret", "{outside}/secret"])
def test_a_name_that_leaves_the_place_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "root" / "a").mkdir(parents=True)
    place = Location(str(tmp_path / "root"))
    with pytest.raises(ValueError, match="is not a name below"):
        read_object(object_client(place), place, name.format(outside=tmp_path))


@pytest.mark.parametrize("modified_ns", [-1_500, -1_000_000_500, 0, 1_999, 5 * 10**18])
def test_a_file_of_any_time_has_the_version_that_obstore_gives_it(tmp_path: Path, modified_ns: int) -> None:
    place = Location(str(tmp_path))
    (tmp_path / "a.json").write_bytes(b"abc")
    os.utime(tmp_path / "a.json", ns=(modified_ns, modified_ns))
    client = object_client(place)
    etag = normal_etag(obstore.head(client, "a.json")["e_tag"])
    assert read_object(client, place, "a.json").version["e_tag"] == etag


_HOLDER = """
import fcntl, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])  # kept for sigtimedwait if it comes early
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        sys.exit("no leases here")
    print("leased", flush=True)
    sys.exit(0 if signal.sigtimedwait([signal.SIGIO], 60) else "nobody asked for the file")
"""


@pytest.mark.more  # leases depend on the kernel and on the file system
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has leases")
def test_a_file_that_a_file_server_has_leased_is_read_after_the_lease(tmp_path: Path) -> None:
    place = Location(str(tmp_path))
    (tmp_path / "a.json").write_bytes(b"abc")
    with subprocess.Popen([sys.executable, "-c", _HOLDER, str(tmp_path / "a.json")], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        if holder.stdout.readline() != b"leased\n":
            pytest.skip("the file system of the temporary directory has no leases")
        assert read_object(object_client(place), place, "a.json").content == b"abc"
    assert holder.returncode == 0


READERS: dict[str, Callable[[Location], object]] = {
    NAME: read_record,
    "owner.json": read_owner,
    MANIFEST: lambda place: opened_table(sw.ParquetFiles(place.url), SystemClock()),
    "commands/c.answer.json": lambda place: CommandInbox(place, SystemClock()).answer_to("c"),
}


@pytest.mark.timeout(120)  # without the promise the reader waits for good
@pytest.mark.parametrize("name", READERS)
def test_a_pipe_with_the_name_of_a_small_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / name)
    step = "delete it, or restore the file of this name from a copy"
    with pytest.raises(DamagedStoreError, match=rf"/{name} is a named pipe, not a regular file: {step}"):
        READERS[name](Location(str(tmp_path)))


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_is_too_large_is_named_before_its_bytes_are_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    with (tmp_path / name).open("wb") as file:
        file.truncate(1 << 43)
    with pytest.raises(DamagedStoreError, match=rf"/{name} has 8,796,093,022,208 bytes, more than .*: delete it"):
        READERS[name](Location(str(tmp_path)))


def test_an_object_of_a_bucket_that_is_too_large_is_not_read(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put(bucket, "root/a.json", b"abc")
    place = Location(f"s3://{bucket}/root", s3.storage_options)
    monkeypatch.setattr(stored_object, "MOST_BYTES", 2)
    with pytest.raises(ObjectTooLargeError, match="has 3 bytes"):
        read_object(object_client(place), place, "a.json")
