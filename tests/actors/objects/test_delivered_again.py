"""An object of the same bytes that was delivered after the read one is another file: it is not deleted unread."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from actors.file_errors import ObjectChanged
from actors.objects.object_changes import ObjectChanges
from actors.objects.object_store import ObjectStore
from slackwater.testing.servers.s3_server import S3Server


@pytest.mark.parametrize("action", ["delete", "copy"])
def test_an_object_that_was_written_at_another_time_stays(s3: S3Server, bucket: str, action: str) -> None:
    location = s3.location(bucket, "raw")
    s3.put(bucket, "raw/daily.csv", b"n\n1\n")
    objects, changes = ObjectStore(location), ObjectChanges(location)
    found = objects.find("s", "daily.csv", exact_time=True)
    assert found is not None
    read = replace(found, last_modified=found.last_modified - timedelta(days=1))
    with pytest.raises(ObjectChanged):
        if action == "delete":
            changes.delete(read)
        else:
            changes.copy(read, s3.location(bucket, "archive"))
    assert objects.find("s", "daily.csv") is not None
    changes.delete(replace(found, last_modified=found.last_modified.replace(microsecond=0)))
    assert objects.find("s", "daily.csv") is None
