"""PublishedTable: the table of a target, as a publisher sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from obstore.exceptions import BaseError

from slackwater.publishing.publication import PublishedEpoch
from slackwater.reading.changes.view_changes import ViewChange
from state.errors import CommitRefusedError, SchemaError
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.places.marker import Marker
from state.removal.objects import probe, remove_empty_directories

FILE_BYTES = 128 << 20
"""The size of a data file, as Arrow counts its rows."""


@dataclass(frozen=True)
class TableHead:
    """The last commit of a table that may have changed its rows.

    Args:
        version: the version of the table, in the words of its format.
        published: the epoch that the commit names; None if it is not ours.
        commit: the commit in words, for messages.
    """

    version: str
    published: PublishedEpoch | None
    commit: str


class PublishedTable(Protocol):
    """The table of a target as of the moment when it was opened.

    Every method raises StorageError if the place cannot be read or written, and CommitRefusedError if another process
    has written to the table since it was opened: then nothing was written.
    """

    @property
    def locations(self) -> Sequence[Location]:
        """The directories that it is written to; none if a catalog still has to choose one."""
        ...

    def head(self) -> TableHead | None:
        """Its last commit; None if there is no table, or one that nothing was written to."""

    def require_fit(self, schema: pa.Schema) -> None:
        """Checks that rows with these columns can be written.

        Raises:
            SchemaError: the format does not have a type, or the table has other columns.
        """

    def require_writable(self) -> None:
        """Checks the right to write, by a small object beside the data files, which is deleted at once."""

    def mark(self, marker: Marker) -> None:
        """Writes the marker of the table, before the first row, unless its directory has an object of that name."""

    def replace(self, rows: pa.RecordBatchReader, epoch: PublishedEpoch) -> str:
        """Writes these rows in place of all others, as one commit; returns the version."""

    def change(self, change: ViewChange, epoch: PublishedEpoch) -> str:
        """Removes and writes the rows of a change, as one commit; returns the version."""

    def maintain(self) -> None:
        """Compacts and expires what is old, by the means of the format.  No row changes."""


def check_writable(location: Location) -> None:
    """Writes and deletes a small object.  A directory that is made for it goes again.

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
    """Checks the columns of a table against those of a view.

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


def refused_commit(place: object) -> CommitRefusedError:
    """The error of a commit that came second."""
    return CommitRefusedError(
        f"{place}: another process has written to the table meanwhile; nothing was published; publish again"
    )
