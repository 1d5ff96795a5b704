"""What all tests share: one real S3 server per run, and a bucket of its own for each test that wants one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from slackwater.testing.s3_server import S3Server

_bucket_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A real S3 server; started by the first test that asks for it."""
    with S3Server() as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server) -> str:
    """The name of a fresh, empty bucket on the server."""
    return s3.create_bucket(f"bucket-{next(_bucket_numbers)}")
