"""A root that was written by hand, in a directory and in a bucket."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.testing.servers.s3_server import S3Server
from state.location import Location
from tests.slackwater.reading.written_root import WrittenRoot, write_root


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    """A root in a directory; its source is one too, with two of the objects still there."""
    raw = tmp_path / "raw"
    for name in ("day=1/a.csv", "day=3/unseen.csv", "day=3/_hidden.csv", "day=3/notes.txt"):
        (raw / name).parent.mkdir(parents=True, exist_ok=True)
        (raw / name).write_text("carrier,day\n")
    return write_root(Location(str(tmp_path / "root")), Location(str(raw)))


@pytest.fixture
def written_s3(s3: S3Server, bucket: str) -> WrittenRoot:
    """The same in a bucket."""
    s3.put(bucket, "raw/day=3/unseen.csv", b"carrier,day\n")
    options = s3.storage_options
    return write_root(Location(f"s3://{bucket}/root", options), Location(f"s3://{bucket}/raw", options))
