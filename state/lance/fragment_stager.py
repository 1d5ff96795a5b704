"""Rows that are written as fragments of a dataset by many, and made visible by one commit of another."""

from __future__ import annotations

import json

import lance
import pyarrow as pa
from lance import FragmentMetadata
from lance.fragment import write_fragments

from state.lance.lance_access import lance_options, open_dataset
from state.location import Location
from state.objects.storage_error import storage_error
from state.tables.lance_layout import for_lance

# What the rows of a dataset are written with stays what it was when its first rows were staged.
_FILE_VERSION = "2.2"


class FragmentStager:
    """Writes fragments for a dataset that may exist, or not yet, and that others may create or change meanwhile.

    The ids of the columns are given in the order of the schema, whatever the dataset has: its columns must be those of
    the schema, or the first of them.  Fragments that nobody commits are files that no version names; Lance's clean-up
    removes them when they are seven days old.

    Args:
        location: of the dataset.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._dataset: lance.LanceDataset | None = None

    def stage(self, rows: pa.Table) -> tuple[str, ...]:
        """Writes rows; the fragments as JSON.

        Raises:
            StorageError: the place cannot be written.
        """
        try:
            return tuple(json.dumps(each.to_json()) for each in self._written(rows))
        except (OSError, ValueError, RuntimeError) as error:
            raise storage_error(error, self._location) from None

    def _written(self, rows: pa.Table) -> list[FragmentMetadata]:
        if self._dataset is None:
            try:
                return self._write(rows, "create")
            except OSError as error:
                if "already exists" not in str(error):
                    raise
            # By its uri it would be opened for each block: 17 ms on S3, against 3.
            self._dataset = open_dataset(self._location)
        # What is written in this mode takes the schema as it is, and not what the dataset has by now.
        return self._write(rows, "overwrite")

    def _write(self, rows: pa.Table, mode: str) -> list[FragmentMetadata]:
        written = write_fragments(
            for_lance(rows),
            self._dataset or self._location.lance_uri,
            rows.schema,
            mode=mode,
            data_storage_version=_FILE_VERSION,
            storage_options=None if self._dataset else lance_options(self._location),
        )
        assert isinstance(written, list)
        return written


def staged_fragments(fragments: tuple[str, ...]) -> list[FragmentMetadata]:
    """What `FragmentStager.stage` has written, for the commit."""
    return [FragmentMetadata.from_json(each) for each in fragments]
