"""Staged fragments: many processes write rows of a dataset, and one commit of another process makes them visible."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import lance
import pyarrow as pa
from lance import FragmentMetadata
from lance.fragment import write_fragments

from state.clock import Clock, SystemClock
from state.lance.lance_access import lance_options, open_dataset
from state.location import Location
from state.objects.storage_error import storage_error
from state.tables.lance_layout import for_lance
from state.tables.staging_age import require_fresh

# The file version of a dataset never changes after its first rows are staged.
_FILE_VERSION = "2.2"


class FragmentStager:
    """Writes fragments for a dataset that may not exist yet; other processes may create or change it meanwhile.

    Lance numbers the columns in the order of the schema of the rows: the columns of the dataset must be the
    columns of that schema, or its first columns.

    Args:
        location: the location of the dataset.
        clock: the clock for the time of staging.
    """

    def __init__(self, location: Location, clock: Clock = SystemClock()) -> None:
        self._location, self._clock = location, clock
        self._dataset: lance.LanceDataset | None = None

    def stage(self, rows: pa.Table) -> tuple[str, ...]:
        """Writes rows, and returns their fragments as JSON.

        Raises:
            StorageError: the location cannot be written.
        """
        try:
            return tuple(staged_json(each, self._clock) for each in self._written(rows))
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


def staged_json(fragment: FragmentMetadata, clock: Clock) -> str:
    """A fragment and the time of its staging as JSON."""
    return json.dumps({"staged_at": clock.now().isoformat(), "fragment": fragment.to_json()})


def staged_fragments(staged: Sequence[str], clock: Clock = SystemClock()) -> list[FragmentMetadata]:
    """The fragments of `staged_json`, for the commit.

    Args:
        staged: the fragments as JSON.
        clock: the clock for their age; it may differ by a day from the clock of the staging process.

    Raises:
        CommitRefusedError: a fragment is so old that its files may be deleted.
    """
    values = [json.loads(each) for each in staged]
    for each in values:
        require_fresh(datetime.fromisoformat(each["staged_at"]), clock.now())
    return [FragmentMetadata.from_json(json.dumps(each["fragment"])) for each in values]
