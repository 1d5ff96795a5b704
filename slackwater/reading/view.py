"""View at one epoch, as Arrow, pandas, polars, Spark, Ray or Lance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa

from slackwater.reading.notebook import as_html
from slackwater.reading.rows_by_key import KeyRange, RowsByKey
from slackwater.reading.selection import Selection
from slackwater.reading.view_reader import ViewReader
from state.errors import SchemaError, UsageError
from state.lance.lance_access import lance_options
from state.location import Location
from state.tables.group_key import KEY_COLUMN, group_keys, key_range
from state.tables.records import ViewVersion

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession
    from ray.data import Dataset


class View:
    """The rows of a view at one epoch, read on demand.

    Every `to_...` reads only the selected columns and rows:

    * `columns`: a list of names, in the wanted order; without it all columns.
    * `filter`: a condition in Lance's SQL (`"n > 100 AND carrier IN ('AA', 'UA')"`): comparisons, AND, OR, NOT, IN,
      BETWEEN, LIKE, IS NULL, CAST, arithmetic and functions of one row.  A name with other characters than letters,
      digits and `_` needs backquotes; a date is `date '2013-01-01'`.

    Both are checked at once; a UsageError names the unknown column or the fault of the condition.

    The internal columns of Slackwater (`__sw_...`) are hidden everywhere but in `lance()`.

    Args:
        root: the root of the pipeline.
        version: the dataset and its version.
        key: the columns of the result by which a group is looked up.
        epoch: the epoch of the snapshot.
    """

    def __init__(self, root: Location, version: ViewVersion, key: tuple[str, ...], epoch: int = 0) -> None:
        self._reader = ViewReader(root, version)
        self._by_key = RowsByKey(self._reader)
        self._key, self._epoch = key, epoch

    def __repr__(self) -> str:
        return f"View({self.name!r}, {str(self._reader.location)!r}, version={self._reader.version.version})"

    def _repr_html_(self) -> str:
        rows, count = self.head(), self.count_rows()
        return as_html(repr(self), rows, f"{rows.num_rows:,} of {count:,} rows" if count > rows.num_rows else "")

    @property
    def name(self) -> str:
        return self._reader.name

    @property
    def reader(self) -> ViewReader:
        """The reader of its dataset."""
        return self._reader

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that `get` and `scan` take; empty for a view without groups."""
        return self._key

    @property
    def reflects_epoch(self) -> int:
        """The epoch whose rows the view shows: the snapshot's, unless it is recomputed as a whole, stopped or stale."""
        reflects = self._reader.version.reflects_epoch
        return self._epoch if reflects is None else reflects

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return self._reader.schema

    def lance(self) -> lance.LanceDataset:
        """The Lance dataset, checked out at this epoch's version.

        Raises:
            EpochExpiredError: the version is no longer retained.
            StorageError: the root cannot be read.
        """
        return self._reader.dataset

    def count_rows(self) -> int:
        return int(self.lance().count_rows())

    def to_arrow(self, *, columns: Sequence[str] | None = None, filter: str | None = None) -> pa.Table:
        """An Arrow table.

        Args:
            columns: the names of columns; None for all.
            filter: a condition in SQL, see `View`.

        Raises:
            UsageError: a column does not exist, or the condition is not valid or cannot be computed for a row.
            EpochExpiredError: the version is no longer retained.
            StorageError: the root cannot be read.

        Examples:
            >>> snapshot.view("by_carrier").to_arrow(columns=["carrier"], filter="n > 100")  # doctest: +SKIP
        """
        return self._reader.selected(self._reader.selection(columns, filter))

    def head(self, limit: int = 20, *, columns: Sequence[str] | None = None, max_bytes: int | None = None) -> pa.Table:
        """The first `limit` rows in Lance's order, as an Arrow table; no others are read.

        Args:
            limit: the largest number of rows.
            columns: the names of columns; None for all.
            max_bytes: the table ends with the row that exceeds this number of bytes; None for no limit.

        Raises:
            UsageError: a column does not exist, or `max_bytes` is not above 0.
            EpochExpiredError: the version is no longer retained.
            StorageError: the root cannot be read.
        """
        selected = self._reader.selection(columns).columns
        if max_bytes is None:
            return self._reader.table(selected, limit=limit)
        if not max_bytes > 0:
            raise UsageError(f"max_bytes={max_bytes!r}: give a number of bytes above 0")
        return self._reader.first_bytes(selected, limit, max_bytes)

    def to_pandas(self, *, columns: Sequence[str] | None = None, filter: str | None = None) -> pd.DataFrame:
        """A pandas frame; arguments and errors as `to_arrow`; needs pandas."""
        frame: pd.DataFrame = self.to_arrow(columns=columns, filter=filter).to_pandas()
        return frame

    def to_polars(self, *, columns: Sequence[str] | None = None, filter: str | None = None) -> pl.DataFrame:
        """A polars frame; arguments and errors as `to_arrow`; needs polars."""
        import polars as pl

        frame = pl.from_arrow(self.to_arrow(columns=columns, filter=filter))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_ray(self, *, columns: Sequence[str] | None = None, filter: str | None = None) -> Dataset:
        """A Ray dataset, read in parallel when it is used; arguments and errors as `to_arrow`; needs ray."""
        import ray.data

        selection = self._reader.selection(columns, filter)
        columns = list(selection.columns)
        rows = ray.data.read_lance(
            self._reader.location.lance_uri,
            version=self._reader.version.version,
            storage_options=lance_options(self._reader.location),
            scanner_options={"columns": columns, "filter": selection.condition},
        )
        rows = rows.select_columns(columns)  # Ray takes the schema of the whole dataset, also for a selection
        if selection.filter is None:
            return rows
        # Ray takes the number of rows from the fragments, before the filter, unless a function follows.
        return rows.map_batches(lambda batch: batch, batch_format="pyarrow", batch_size=None, zero_copy_batch=True)

    def to_spark(
        self, spark: SparkSession, *, columns: Sequence[str] | None = None, filter: str | None = None
    ) -> DataFrame:
        """A Spark DataFrame, read when it is used: one partition per fragment.

        Spark 3.5 pushes nothing down into a source that is written in Python: a `select` or `where` on the DataFrame
        follows the reading.  Give columns and filter here.

        Args:
            spark: the session; its workers need `pylance`.
            columns: the names of columns; None for all.
            filter: a condition in SQL, see `View`; Lance's, not Spark's.

        Raises:
            SchemaError: a column has a type that Spark does not know.
            UsageError: as `to_arrow`.
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        selection = self._reader.selection(columns, filter)
        try:
            schema = from_arrow_schema(pa.schema([self.schema.field(name) for name in selection.columns]))
        except Exception as error:  # Spark raises several kinds of errors for one reason
            raise SchemaError(
                f"view {self.name!r} cannot be read into Spark: {error}; leave the column out with `columns`, or read "
                "the view with to_arrow()"
            ) from error
        fragments = [fragment.fragment_id for fragment in self.lance().get_fragments()]
        if not fragments:
            return spark.createDataFrame([], schema)
        positions = spark.range(0, len(fragments), 1, numPartitions=len(fragments))
        return positions.mapInArrow(self._fragment_reader(fragments, selection), schema)

    def _fragment_reader(
        self, fragments: list[int], selection: Selection
    ) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        uri, version = self._reader.location.lance_uri, self._reader.version.version
        options = lance_options(self._reader.location)
        columns, condition = list(selection.columns), selection.condition

        def read(positions: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import lance  # late, in the forked worker: Lance does not survive a fork

            dataset = lance.dataset(uri, version=version, storage_options=options)
            for batch in positions:
                for position in batch.column(0).to_pylist():
                    fragment = dataset.get_fragment(fragments[position])
                    yield from fragment.to_batches(columns=columns, filter=condition)

        return read

    def get(self, /, **key: Any) -> dict[str, Any] | None:
        """The row of one group; None if the view does not have it.

        Args:
            key: a value for every column of `key`; None finds the group of nulls.

        Raises:
            UsageError: the view has no key, the columns are not its key, or a value has not the type of its column.

        Examples:
            >>> snapshot.view("by_carrier").get(carrier="AA")  # doctest: +SKIP
        """
        self._require_key()
        if key.keys() != set(self._key):
            raise UsageError(
                f"view {self.name!r} is looked up by {', '.join(self._key)}; given: {', '.join(key) or '-'}"
            )
        rows = self._rows_of_keys(KeyRange(self._key_text(key))).to_pylist()
        return rows[0] if rows else None

    def scan(self, /, **prefix: Any) -> pa.Table:
        """The rows of all groups with these values in the first columns of the key, as an Arrow table.

        The index of the keys finds them: the cost depends on the rows found.

        Args:
            prefix: a value for the first column of `key`, or for the first two, and so on; None means null.

        Raises:
            UsageError: the view has no key, the columns are not its first ones, or a value is of another type.

        Examples:
            >>> snapshot.view("by_carrier_and_day").scan(carrier="AA")  # doctest: +SKIP
        """
        self._require_key()
        leading = self._key[: len(prefix)]
        if not prefix or prefix.keys() != set(leading):
            raise UsageError(
                f"view {self.name!r} is scanned by the first columns of its key, which is {', '.join(self._key)}; "
                f"given: {', '.join(prefix) or '-'}"
            )
        if len(leading) == len(self._key):
            return self._rows_of_keys(KeyRange(self._key_text(prefix)))
        return self._rows_of_keys(KeyRange(*key_range([self._key_value(column, prefix[column]) for column in leading])))

    def _rows_of_keys(self, wanted: KeyRange) -> pa.Table:
        return self._by_key.rows(self.schema.names, wanted)

    def _require_key(self) -> None:
        if not self._key or KEY_COLUMN not in self._reader.stored_schema.names:
            raise UsageError(f"view {self.name!r} has no key to look a row up by: filter to_arrow() instead")

    def _key_text(self, key: dict[str, Any]) -> str:
        return str(group_keys([self._key_value(column, key[column]) for column in self._key])[0].as_py())

    def _key_value(self, column: str, value: Any) -> pa.Array:
        data_type = self._reader.stored_schema.field(column).type
        try:
            return pa.array([value], data_type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
            raise UsageError(
                f"{column}={value!r} is not a valid {data_type}, the type of the column in view {self.name!r}"
            ) from error
