"""Rows that Spark's tasks have added to a dataset, which no process holds until one needs them as a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import lance
import pyarrow as pa

from actors.formats.limits import row_bytes
from state.location import Location


@dataclass(frozen=True)
class AddedRows:
    """Such rows of one dataset.

    Args:
        dataset: a handle on the version that has added them.
        fragments: the numbers of their fragments.
    """

    location: Location
    dataset: lance.LanceDataset
    fragments: tuple[int, ...]
    schema: pa.Schema

    @property
    def num_rows(self) -> int:
        """Their number."""
        return sum(int(self.dataset.get_fragment(each).count_rows()) for each in self.fragments)

    @property
    def nbytes(self) -> int:
        """Their estimated size in bytes."""
        return self.num_rows * row_bytes(self.schema)

    @cached_property
    def table(self) -> pa.Table:
        """All of them, in this process."""
        fragments = [self.dataset.get_fragment(each) for each in self.fragments]
        rows = self.dataset.scanner(columns=self.schema.names, fragments=fragments).to_table()
        return rows.select(self.schema.names).cast(self.schema)
