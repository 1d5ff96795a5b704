"""Messages of many files are as large as their names, and the same at the other end."""

from __future__ import annotations

import pickle
import pickletools
from dataclasses import replace
from datetime import timedelta, timezone

import pytest

from actors.files import FileVersion
from actors.protocol.messages import NewFiles, RereadFiles
from tests.actors.flow import AT, file

_HOUR_EAST = timezone(timedelta(hours=1))


def versions(count: int) -> tuple[FileVersion, ...]:
    """Each with a time of its own, in another time zone."""
    times = ((AT + timedelta(microseconds=1001 * number)).astimezone(_HOUR_EAST) for number in range(count))
    return tuple(replace(file(f"{number}"), last_modified=time) for number, time in enumerate(times))


@pytest.mark.parametrize("message", [NewFiles(()), NewFiles(versions(3), sample=5), RereadFiles(versions(2))])
def test_files_arrive_as_they_were_sent(message: NewFiles | RereadFiles) -> None:
    assert pickle.loads(pickle.dumps(message)) == message


def test_no_object_travels_for_each_file() -> None:
    def objects(count: int) -> int:
        operations = pickletools.genops(pickle.dumps(NewFiles(versions(count))))
        return sum(operation.name in ("BUILD", "NEWOBJ", "REDUCE") for operation, _, _ in operations)

    assert objects(100) == objects(1)
