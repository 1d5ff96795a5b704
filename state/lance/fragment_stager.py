"""Staged fragments: many processes write rows of a dataset, and one commit of another process makes them visible."""

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

# The file version of a dataset never changes after its first rows are staged.
_FILE_VERSION = "2.2"


class FragmentStager:
    """Writes fragments for a dataset that may not exist yet; other processes may create or change it meanwhile.

    Lance numbers the columns in the order of the schema of the rows: the columns of the dataset must be those of that
    schema, or its first ones.  Fragments without a commit are files that no version names; Lance's clean-up removes
    them when they are seven days old.

    Args:
        location: the location of the dataset.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._dataset: lance.LanceDataset | None = None

    def stage(self, rows: pa.Table) -> tuple[str, ...]:
        """Writes rows, and returns their fragments as JSON.

        Raises:
            StorageError: the location cannot be written.
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
            # With its URI, Lance would open it for each block: 17 ms on S3 instead of 3.
            self._dataset = open_dataset(self._location)
        # In this mode Lance takes the schema of the rows, not the present one of the dataset.
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
    """The fragments of `FragmentStager.stage`, for the commit."""
    return [FragmentMetadata.from_json(each) for each in fragments]
