"""The format of a store: a number in the metadata of the schema of `state.lance`, checked when the store is opened.

The number stands for the tables and their fields (`state.tables.tables`).  A version of Slackwater reads and writes
exactly one format.  Next to the number is the version of Slackwater that wrote it, for the message of a refusal.
"""

from __future__ import annotations

from importlib.metadata import version

import pyarrow as pa

from state.errors import RootMismatchError
from state.location import Location
from state.tables.tables import FORMAT_VERSION, STATE_SCHEMA

_FORMAT, _WRITER = b"slackwater.format", b"slackwater.version"


def stamped_schema() -> pa.Schema:
    """The schema of a new store, with the format and the version of Slackwater in its metadata."""
    return STATE_SCHEMA.with_metadata({_FORMAT: str(FORMAT_VERSION), _WRITER: version("slackwater")})


def check_format(schema: pa.Schema, root: Location) -> None:
    """Refuses a store of another format.

    Args:
        schema: the schema of its `state.lance`.
        root: the root of the store, for the message.

    Raises:
        RootMismatchError: the format is another one, or is not given.
    """
    metadata = schema.metadata or {}
    found = metadata.get(_FORMAT, b"(none)").decode()
    if found != str(FORMAT_VERSION):
        writer = metadata.get(_WRITER, b"(unknown version)").decode()
        raise RootMismatchError(
            f"the store at {root} has format {found} and was written by Slackwater {writer}; this version reads and "
            f"writes format {FORMAT_VERSION}: install Slackwater {writer}, or use another root"
        )
