"""The format of a store: a number in the metadata of the schema of `state.lance`, checked when the store is opened.

The number covers everything that a root stores: the tables and their fields (`state.tables.tables`), keys,
fingerprints, the datasets of views, and the small objects next to them.  A version of Slackwater reads and writes
exactly one format.  Next to the number is the version of Slackwater that wrote it, for the message of a refusal.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version

import pyarrow as pa

from state.errors import RootMismatchError
from state.location import Location
from state.tables.tables import FORMAT_VERSION, STATE_SCHEMA

_FORMAT, _WRITER = b"slackwater.format", b"slackwater.version"
_NUMBER = re.compile("[0-9]{1,9}")
_MOST_LETTERS = 64
_NEW_ROOT = "give the pipeline a new root, into which it reads its files again (guide/upgrades in the documentation)"


def stamped_schema() -> pa.Schema:
    """The schema of a new store, with the format and the version of Slackwater in its metadata."""
    return STATE_SCHEMA.with_metadata({_FORMAT: str(FORMAT_VERSION), _WRITER: _our_version()})


def check_format(schema: pa.Schema, root: Location) -> None:
    """Refuses a store of another format.

    Args:
        schema: the schema of its `state.lance`.
        root: the root of the store, for the message.

    Raises:
        RootMismatchError: the format is older or newer, has no number, or lacks tables of its number.
    """
    metadata = schema.metadata or {}
    found = metadata.get(_FORMAT, b"").decode(errors="replace")
    writer = metadata.get(_WRITER, b"").decode(errors="replace")[:_MOST_LETTERS] or "(unknown version)"
    ours = f"this is Slackwater {_our_version()}, which reads and writes format {FORMAT_VERSION}"
    if not _NUMBER.fullmatch(found):
        raise RootMismatchError(
            f"the root at {root} has a state.lance without a format number; {ours}: if Slackwater wrote the root, "
            f"restore it from a copy; otherwise give the pipeline a root of its own"
        )
    theirs = f"the root at {root} has format {found} and was written by Slackwater {writer}; {ours}"
    reader, later = f"Slackwater {writer}", f"Slackwater {writer} or later"
    if writer == version("slackwater"):  # builds between two releases share a version, and may have other formats
        reader = f"the build of Slackwater {writer} that wrote it"
        later = f"{reader}, or a later build"
    if int(found) > FORMAT_VERSION:
        raise RootMismatchError(f"{theirs}: install {later}, or {_NEW_ROOT}")
    if int(found) < FORMAT_VERSION:
        raise RootMismatchError(f"{theirs}: read the root with {reader}, and {_NEW_ROOT}")
    if missing := _missing_fields(schema):
        raise RootMismatchError(
            f"{theirs}, but the root lacks {missing}: another build of this version wrote it; read the root with "
            f"that build, and {_NEW_ROOT}"
        )


def _missing_fields(schema: pa.Schema) -> str:
    """The first columns and fields that a store of this format has and the schema lacks; empty without any."""
    missing = []
    for column in STATE_SCHEMA:
        at = schema.get_field_index(column.name)
        if at < 0:
            missing.append(column.name)
        elif pa.types.is_struct(column.type) and pa.types.is_struct(schema.field(at).type):
            present = {each.name for each in schema.field(at).type}
            missing += [f"{column.name}.{each.name}" for each in column.type if each.name not in present]
    return ", ".join(missing[:3])


@cache
def _our_version() -> str:
    return version("slackwater")
