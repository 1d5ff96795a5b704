"""In which order the files of a source are read, where one is asked for."""

from __future__ import annotations

from datetime import UTC, datetime

from actors.protocol.messages import FileVersion

_ANY_TIME = datetime.min.replace(tzinfo=UTC)


def place(file: FileVersion, order: str) -> tuple[datetime, str]:
    """What files are sorted by: their time, and then their name; or their name alone."""
    return (file.last_modified if order == "last_modified" else _ANY_TIME), file.path
