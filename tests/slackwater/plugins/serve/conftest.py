"""Endpoints over roots that were written by hand."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from state.location import Location
from tests.slackwater.plugins.serve.served_sql import ServedSql, served
from tests.slackwater.plugins.serve.value_root import write_values
from tests.slackwater.reading.written_root import WrittenRoot, write_root


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSql]:
    """A root with a column of every type."""
    with served(write_values(tmp_path_factory.mktemp("values") / "root")) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> WrittenRoot:
    """A root with four epochs."""
    place = tmp_path_factory.mktemp("written")
    return write_root(Location(str(place / "root")), Location(str(place / "raw")))


@pytest.fixture(scope="module")
def flights(written: WrittenRoot) -> Iterator[ServedSql]:
    """The endpoint of that root."""
    with served(written.root.url) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of this machine, and its key."""
    place = tmp_path_factory.mktemp("tls")
    certificate, key = place / "server.crt", place / "server.key"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    named = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *named], check=True, capture_output=True)
    return certificate, key
