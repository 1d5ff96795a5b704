"""The Lance dataset of a view, or of its partials: one writer, one commit after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import FragmentMetadata

from spark_bridge.datasets.dataset_upkeep import DatasetUpkeep
from spark_bridge.datasets.dataset_writer import (
    DatasetWriter,
    NewRows,
    commit_error,
    has_rows,
    num_rows_of,
    written_cost,
)
from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.datasets.look_ups import PART_ROWS, LookUps
from spark_bridge.work_cost import count
from state.lance.lance_access import create_dataset, create_of_fragments, open_dataset
from state.lance.row_address import ADDRESS
from state.location import Location
from state.tables.epoch_trace import WorkCost
from state.tables.lance_layout import with_schema

# The cache grows with the data read into it: the index of five million groups needs 150 MB.
_INDEX_CACHE_BYTES = 256 << 20


def time_in_sql(us: int, kind: pa.DataType) -> str:
    """A time of microseconds since 1970 in the SQL of conditions, of the type of a column."""
    zone = "None" if kind.tz is None else f'Some("{kind.tz}")'
    return f"arrow_cast({us}, 'Timestamp(Microsecond, {zone})')"


class ViewTable:
    """A handle on a dataset, always at the version that it wrote last.

    `DatasetWriter` makes its versions and describes their errors, `LookUps` finds its rows, and `DatasetUpkeep` keeps
    both fast.  Slackwater's readers see a version after an epoch record names it.

    Args:
        dataset: a handle on the version to continue from.
    """

    def __init__(self, location: Location, dataset: lance.LanceDataset) -> None:
        self._writer = DatasetWriter(location, dataset)
        self._upkeep = DatasetUpkeep(self._writer)
        self._look_ups = LookUps(self._writer, next(iter(self._upkeep.keys), None))

    @classmethod
    def create(cls, location: Location, rows: pa.Table) -> ViewTable:
        """Creates the dataset with its first rows.

        Raises:
            CommitRefusedError: it exists already.
        """
        table = cls.open(location, create_dataset(location, rows).version)
        count(written_cost([each.metadata for each in table._dataset.get_fragments()]))
        return table

    @classmethod
    def create_of_fragments(
        cls, location: Location, schema: pa.Schema, fragments: Sequence[FragmentMetadata]
    ) -> ViewTable:
        """Creates the dataset from staged fragments.

        Raises:
            CommitRefusedError: it exists already.
        """
        return cls.open(location, create_of_fragments(location, schema, fragments).version)

    @classmethod
    def open(cls, location: Location, version: int) -> ViewTable:
        """Opens one version; only the latest version can be written to."""
        return cls(location, open_dataset(location, version, index_cache_bytes=_INDEX_CACHE_BYTES))

    @property
    def _dataset(self) -> lance.LanceDataset:
        return self._writer.dataset

    @property
    def location(self) -> Location:
        return self._writer.location

    @property
    def version(self) -> int:
        """The version that changed rows last; tidying makes later versions with the same rows."""
        return self._writer.version

    @property
    def num_rows(self) -> int:
        """Number of rows, known without reading them."""
        return int(self._dataset.count_rows())

    @property
    def schema(self) -> pa.Schema:
        return self._dataset.schema

    def added_since(self, before: lance.LanceDataset) -> tuple[int, ...]:
        """The numbers of the fragments that an earlier version of the rows lacks."""
        known = {each.fragment_id for each in before.get_fragments()}
        return tuple(each.fragment_id for each in self._dataset.get_fragments() if each.fragment_id not in known)

    def snapshot(self) -> lance.LanceDataset:
        """A handle on the rows as they are now, with their indexes; later changes do not show in it."""
        return self._dataset.checkout_version(self._dataset.version)

    def parts(self, columns: Collection[str]) -> Iterator[pa.Table]:
        """Yields all rows, in tables of some ten thousand; one without rows if there are none."""
        names, batches = [*dict.fromkeys(columns)], list[pa.RecordBatch]()
        if self.num_rows == 0:
            yield self._dataset.to_table(columns=names, limit=0)
        for batch in self._dataset.to_batches(columns=names, batch_size=PART_ROWS):
            batches.append(batch)
            if sum(each.num_rows for each in batches) >= PART_ROWS:
                yield pa.Table.from_batches(batches)
                batches = []
        if batches:
            yield pa.Table.from_batches(batches)

    def append(self, rows: NewRows) -> None:
        """Appends rows; none make no new version."""
        if has_rows(rows):
            self._look_ups.follow(np.empty(0, np.uint64), rows)
            self._writer.append(rows)
            self._upkeep.follow(num_rows_of(rows))

    def add_columns(self, columns: pa.Schema) -> None:
        """Adds columns at the end, null in all present rows.  Append rows next: only rows change `version`."""
        self._writer.add_columns(columns)

    def upsert(self, rows: pa.Table) -> None:
        """Inserts rows, and replaces the rows with the same keys.

        It is cheap after `rows_of` with the same keys, which finds their addresses.

        Args:
            rows: one row for each key.
        """
        self._update(self._look_ups.addresses(rows.column(self._look_ups.by).combine_chunks()), rows)

    def replace(self, rows: NewRows) -> None:
        """Replaces all rows."""
        self._look_ups.follow(None, rows)
        self._writer.replace(rows)
        self._upkeep.follow(num_rows_of(rows))

    def exchange(self, keys: pa.Array, rows: NewRows) -> None:
        """Makes the dataset hold, of the rows with these keys, exactly the given ones; no change makes no new version.

        Args:
            keys: each once.
            rows: any number of them for each of the keys.
        """
        addresses = self._look_ups.addresses(keys)
        if len(addresses) or has_rows(rows):
            self._update(addresses, rows)

    def delete(self, keys: pa.Array) -> None:
        """Deletes the rows with these keys."""
        self._update(self._look_ups.addresses(keys), [])

    def delete_where(self, condition: str) -> None:
        """Deletes the rows that fulfil a SQL condition; no such row makes no new version."""
        self.exchange_where([condition], self._dataset.schema.empty_table())

    def exchange_where(self, conditions: Iterable[str], rows: NewRows) -> None:
        """Deletes the rows that fulfil a condition of SQL, and appends others; no change makes no new version."""
        try:
            found = [self._dataset.to_table(columns=[], filter=each, with_row_address=True) for each in conditions]
        except (OSError, RuntimeError) as error:
            raise commit_error(self.location, error) from error
        addresses = np.concatenate([np.empty(0, np.uint64), *(each.column(ADDRESS).to_numpy() for each in found)])
        if len(addresses):
            self._update(np.unique(addresses), rows)
        else:
            self.append(rows)

    def update_where(self, values: Mapping[str, str], condition: str) -> None:
        """Sets columns of the rows that fulfil a condition.  Values and condition are SQL."""
        if self._writer.rewrite(lambda: self._dataset.update(dict(values), condition)):
            self._upkeep.follow(0)

    def rows_of(self, keys: pa.Array, columns: list[str]) -> pa.Table:
        """The stored rows with these keys, in any order; a key without a row is left out."""
        rows = self._look_ups.rows(keys, columns)
        count(WorkCost(found=rows.num_rows))
        return rows

    def count_of(self, keys: pa.Array) -> int:
        """The number of the stored rows with these keys, which are not read; `exchange` of these keys is cheap next."""
        addresses = self._look_ups.addresses(keys)
        count(WorkCost(found=len(addresses)))
        return len(addresses)

    def take_where(self, condition: str) -> pa.Table:
        """Deletes the rows that fulfil a condition of SQL, and returns them; no such row makes no new version."""
        rows = self._dataset.to_table(filter=condition, with_row_address=True)
        count(WorkCost(found=rows.num_rows))
        if rows.num_rows:
            self._update(rows.column(ADDRESS).to_numpy(), [])
        return rows.drop_columns(ADDRESS)

    def staged(self, rows: NewRows) -> list[FragmentMetadata]:
        """Writes rows as fragments that no version names yet, if they are not written."""
        return self._writer.staged(self._dataset, rows)

    def tidy(self, audit: IndexAudit | None = None) -> bool:
        """See `DatasetUpkeep.tidy`."""
        return self._upkeep.tidy(audit)

    def _update(self, addresses: npt.NDArray[np.uint64], rows: NewRows) -> None:
        """Deletes the rows at these addresses and appends others, in one version."""
        rest = self._look_ups.rest(addresses, rows) if isinstance(rows, pa.Table) else None
        if rest is not None:
            assert isinstance(rows, pa.Table), "there is a rest"
            self.replace(pa.concat_tables([rest, with_schema(rows.select(rest.schema.names), rest.schema)]))
            return
        self._look_ups.follow(addresses, rows)
        self._writer.exchange(addresses, rows)
        self._upkeep.follow(num_rows_of(rows))
