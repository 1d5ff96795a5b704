"""PublishedTable: the table of a target, as a publisher sees it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
from obstore.exceptions import BaseError

from actors.telemetry.logging import redact
from actors.telemetry.text import first_line
from slackwater.plugins.publish.publication import PublishedEpoch
from slackwater.reading.changes.view_changes import ViewChange
from state.equality.exact_rows import nullable_type
from state.errors import CommitRefusedError, PublishError, SchemaError, SlackwaterError, StorageUnavailableError
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.places.marker import Marker
from state.removal.objects import probe, remove_empty_directories

FILE_BYTES = 128 << 20
"""The size of a data file, as Arrow counts its rows."""

# Texts of obstore, delta-rs and the drivers of catalogs about a place that does not answer.
_OF_A_STORE = re.compile(
    r"generic (s3|local|gcs|microsoft|http)|object ?store|object at location|error sending request|timed? ?out"
    r"|os error|errno|connection|i/o error|io error|\b5\d\d\b|database is locked",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class TableHead:
    """The last commit of a table that may have changed its rows.

    Args:
        version: the version of the table, in the words of its format.
        published: the epoch that the commit names; None if it is not ours, or no longer in the log of the table.
        commit: the commit in words, for messages.
        kept_epoch: returns the epoch of the last publication of an application, if the log has lost all commits that
            changed rows, and the table keeps the record elsewhere; else None.
    """

    version: str
    published: PublishedEpoch | None
    commit: str
    kept_epoch: Callable[[PublishedEpoch], int | None] = field(default=lambda _: None, compare=False)


class PublishedTable(Protocol):
    """The table of a target as of the moment when it was opened.

    Every method raises StorageError if the place cannot be read or written, and CommitRefusedError if the table has a
    commit since it was opened: of another process, or an earlier try of the same commit whose answer was lost.
    """

    @property
    def locations(self) -> Sequence[Location]:
        """The directories of the table; none if a catalog still has to choose one."""
        ...

    def head(self) -> TableHead | None:
        """Its last commit; None if the table does not exist, or nothing was written to it."""

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns whose values readers get from texts: names of directories, or partition values in the log."""
        ...

    def require_fit(self, schema: pa.Schema) -> None:
        """Checks that rows with these columns can be written.

        Raises:
            SchemaError: the format does not have a type, or the table has other columns.
        """

    def require_writable(self) -> None:
        """Checks the right to write, by a small object next to the data files, which is deleted at once."""

    def mark(self, marker: Marker) -> None:
        """Writes the marker of the table, before the first row, unless its directory has an object of that name."""

    def replace(self, rows: pa.RecordBatchReader, epoch: PublishedEpoch) -> str:
        """Replaces all rows of the table by these rows, as one commit; returns the version."""

    def change(self, change: ViewChange, epoch: PublishedEpoch) -> str:
        """Removes and writes the rows of a change, as one commit; returns the version.

        Raises:
            InexactChangeError: the commit is wrong: replace all rows.
        """

    def maintain(self) -> None:
        """Compacts files and expires old versions, with the functions of the format.  No row changes."""


def check_writable(location: Location) -> None:
    """Writes and deletes a small object.  A directory that is created for the object is deleted again.

    Raises:
        StorageError: the place cannot be written.
    """
    try:
        is_new = location.is_local and not location.path.exists()
        client = object_client(location)
        probe(client, location)
        if is_new:
            remove_empty_directories(location)
    except (BaseError, OSError) as error:
        raise storage_error(error, location) from None


def require_same_columns(place: object, wanted: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Checks the columns of a table against the columns of a view.

    Args:
        place: the place of the table, for the message.
        wanted: name → type of each column of the view, in the words of the format.
        found: the same of the table.

    Raises:
        SchemaError: they differ.
    """
    if wanted == found:
        return
    names = [*wanted, *(name for name in found if name not in wanted)]
    differ = [name for name in names if wanted.get(name) != found.get(name)]
    texts = [
        f"{name!r} is {found.get(name, 'missing')} there, and {wanted.get(name, 'missing')} here" for name in differ
    ]
    raise SchemaError(f"{place} has other columns than the view: {'; '.join(texts)}: publish to a new table")


class InexactChangeError(PublishError):
    """A change was committed, and the table has other rows than the view: its rows must be replaced at once."""


class OvertakenError(CommitRefusedError):
    """The table has a commit between reading and writing: the next try reads it, and finds out whose it is."""


def refused_commit(place: object) -> OvertakenError:
    """The error of a commit that came second, also after an earlier try of the same commit."""
    return OvertakenError(
        f"{place}: the table has a commit since it was read, of another process or of this publication, whose "
        "answer was lost: it is unknown whether the epoch is published; publish again: the next attempt finds out"
    )


def stored_schema(schema: pa.Schema, format_name: str, convert: Callable[[pa.Schema], pa.Schema]) -> pa.Schema:
    """The schema of a view as a table has it.

    Args:
        schema: the schema of the view.
        format_name: the format of the table, for the message.
        convert: converts a schema of one column to the schema of the format and back.

    Raises:
        SchemaError: the format lacks the type of a column.
    """
    fields = []
    for column in schema:
        try:
            fields.append(convert(pa.schema([column])).field(0))
        except Exception as error:  # PyIceberg has several classes, and delta-rs raises Exception itself
            reason = first_line(error)
            raise SchemaError(f"column {column.name!r} cannot be published to {format_name}: {reason}") from None
    return pa.schema(fields)


def column_types(schema: pa.Schema) -> dict[str, str]:
    """Name → type of each column, for `require_same_columns`, which ignores whether a column may be null."""
    return {field.name: str(nullable_type(field.type)) for field in schema}


def columns_without_nulls(view: pa.Schema, table: pa.Schema) -> list[tuple[str, ...]]:
    """The paths of columns, fields and elements that may be null in a view, and not in its table.

    The parts of lists and maps are called `element`, `key` and `value`.

    Args:
        view: the schema of the view.
        table: the schema of the table, with the same columns.
    """
    return [path for field in view for path in _without_nulls((field.name,), field, table.field(field.name))]


def _without_nulls(path: tuple[str, ...], view: pa.Field, table: pa.Field) -> Iterator[tuple[str, ...]]:
    if view.nullable and not table.nullable:
        yield path
    kind, other = view.type, table.type
    if pa.types.is_struct(kind):
        for part in kind:
            yield from _without_nulls((*path, part.name), part, other.field(part.name))
    elif pa.types.is_map(kind):
        yield from _without_nulls((*path, "key"), kind.key_field, other.key_field)
        yield from _without_nulls((*path, "value"), kind.item_field, other.item_field)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _without_nulls((*path, "element"), kind.value_field, other.value_field)


def publish_error(error: Exception, place: object, location: Location | None) -> SlackwaterError:
    """Converts an error of the library of a format to a `SlackwaterError`.

    Args:
        place: the table, for the message.
        location: the place of the table; None if its catalog chooses it.

    Returns:
        An error of storage if the store or the catalog failed, which may pass by itself; else PublishError.
    """
    is_of_store = isinstance(error, OSError | EOFError) or _OF_A_STORE.search(str(error)) is not None
    if is_of_store and location is not None:
        return storage_error(error, location)
    reason = redact(first_line(error))
    if is_of_store:
        return StorageUnavailableError(f"{place} cannot be read or written now ({reason}): try again later")
    return PublishError(
        f"{place} refuses the rows or the commit ({type(error).__name__}: {reason}): correct the view or the table, or "
        "publish to a new table"
    )
