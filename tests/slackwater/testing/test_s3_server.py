"""The S3 server of the tests is real, private to its owner, and never outlives it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import PermissionDeniedError
from obstore.store import S3Store

from slackwater.testing.servers.s3_server import S3Server
from tests.repository import REPOSITORY
from tests.waiting import eventually, is_gone

_OWNER = """
from slackwater.testing.servers.s3_server import S3Server
server = S3Server()
server.start()
print(server.pid, server._process.directory, flush=True)
input()
"""


def _store(bucket: str, options: dict[str, str]) -> S3Store:
    settings = {name: value for name, value in options.items() if name != "allow_http"}
    return S3Store(bucket, client_options={"allow_http": True}, retry_config={"max_retries": 0}, **settings)  # type: ignore[arg-type]


def test_what_is_put_can_be_read_by_boto3(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "day=1/a b+ü.csv", b"n\n1\n")
    listed = s3.client().list_objects_v2(Bucket=bucket)["Contents"]
    assert [entry["Key"] for entry in listed] == ["day=1/a b+ü.csv"]
    assert s3.client().get_object(Bucket=bucket, Key="day=1/a b+ü.csv")["Body"].read() == b"n\n1\n"


def test_wrong_credentials_are_refused(s3: S3Server, bucket: str) -> None:
    wrong = _store(bucket, {**s3.storage_options, "secret_access_key": "0" * 40})
    with pytest.raises(PermissionDeniedError):
        obstore.head(wrong, "anything")


@pytest.mark.more
def test_many_buckets_can_be_written(s3: S3Server, bucket: str) -> None:
    names = [s3.create_bucket(f"{bucket}-{number}") for number in range(12)]
    for name in names:
        s3.put(name, "object", b"x" * 30_000)
    assert all(len(s3.client().list_objects_v2(Bucket=name)["Contents"]) == 1 for name in names)


def test_the_request_log_has_each_request_once(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "a/é.bin", b"0123456789")
    log = s3.proxy()
    store = _store(bucket, log.storage_options)
    with log.recording() as seen:
        assert bytes(obstore.get_range(store, "a/é.bin", start=2, end=5)) == b"234"
        obstore.put(store, "b", b"new")
        assert len(obstore.list(store).collect()) == 2
    assert [(r.method, r.key, r.status) for r in seen] == [("GET", "a/é.bin", 206), ("PUT", "b", 200), ("GET", "", 200)]
    assert seen[0].range == "bytes=2-4"
    assert [r.is_list for r in seen] == [False, False, True]
    assert s3.client().get_object(Bucket=bucket, Key="b")["Body"].read() == b"new"


def test_the_repr_shows_no_secret(s3: S3Server) -> None:
    assert s3.storage_options["secret_access_key"] not in repr(s3)
    assert s3.storage_options["access_key_id"] not in repr(s3)


@pytest.mark.more
def test_server_dies_with_an_owner_that_is_killed() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY, text=True
    )
    assert owner.stdout is not None and owner.stdin is not None
    pid, directory = owner.stdout.readline().split()
    os.kill(int(pid), 0)
    owner.kill()
    owner.wait()
    assert is_gone(int(pid))
    eventually(lambda: not Path(directory).exists())
    owner.stdin.close()
    owner.stdout.close()


@pytest.mark.more
def test_a_stopped_server_is_gone_at_once() -> None:
    with S3Server() as server:
        pid = server.pid
        os.kill(pid, 0)
    assert is_gone(pid)
