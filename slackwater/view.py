"""One view at one epoch, in the shape that the reader wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa

from state.errors import EpochExpiredError, NotFoundError, SchemaError, UsageError
from state.group_key import KEY_COLUMN, group_keys
from state.lance_access import lance_options, open_dataset
from state.location import Location
from state.records import ViewVersion
from state.storage_error import storage_error

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession
    from ray.data import Dataset

HIDDEN_PREFIX = "__sw_"


class View:
    """The rows of a view at one epoch; nothing is read before it is asked for.

    Columns that Slackwater keeps beside the result (`__sw_...`) are hidden everywhere but in `lance()`.

    Args:
        root: the root of the pipeline.
        version: which version of which dataset.
        key: the columns of the result that a group is looked up by.
    """

    def __init__(self, root: Location, version: ViewVersion, key: tuple[str, ...]) -> None:
        self._location = root.child(version.path)
        self._version = version
        self._key = key
        self._dataset: lance.LanceDataset | None = None

    def __repr__(self) -> str:
        return f"View({self.name!r}, {str(self._location)!r}, version={self._version.version})"

    @property
    def name(self) -> str:
        return self._version.name

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that `get` takes; none if the view has no groups."""
        return self._key

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return pa.schema([field for field in self.lance().schema if not field.name.startswith(HIDDEN_PREFIX)])

    def lance(self) -> lance.LanceDataset:
        """The Lance dataset, checked out at this epoch's version.

        Raises:
            EpochExpiredError: the version is no longer retained.
            StorageError: the root cannot be read.
        """
        if self._dataset is None:
            try:
                self._dataset = open_dataset(self._location, self._version.version)
            except NotFoundError as error:
                raise self._expired() from error
        return self._dataset

    def count_rows(self) -> int:
        return int(self.lance().count_rows())

    def to_arrow(self) -> pa.Table:
        """An Arrow table.

        Raises:
            EpochExpiredError: the version is no longer retained.
            StorageError: the root cannot be read.
        """
        return self._read()

    def to_pandas(self) -> pd.DataFrame:
        """A pandas frame; needs pandas."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """A polars frame; needs polars."""
        import polars as pl

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_ray(self) -> Dataset:
        """A Ray dataset, read in parallel when it is used; needs ray."""
        import ray.data

        return ray.data.read_lance(
            self._location.lance_uri,
            version=self._version.version,
            columns=self.schema.names,
            storage_options=lance_options(self._location),
        )

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """A Spark DataFrame, read when it is used: one partition per fragment.

        Args:
            spark: the session; its workers need `pylance`.

        Raises:
            SchemaError: a column has a type that Spark does not know.
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        try:
            schema = from_arrow_schema(self.schema)
        except Exception as error:  # Spark has several kinds of errors for one reason
            raise SchemaError(
                f"view {self.name!r} cannot be read into Spark: {error}; read it with to_arrow()"
            ) from error
        fragments = [fragment.fragment_id for fragment in self.lance().get_fragments()]
        if not fragments:
            return spark.createDataFrame([], schema)
        positions = spark.range(0, len(fragments), 1, numPartitions=len(fragments))
        return positions.mapInArrow(self._fragment_reader(fragments), schema)

    def _fragment_reader(self, fragments: list[int]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        uri, version = self._location.lance_uri, self._version.version
        options, columns = lance_options(self._location), self.schema.names

        def read(positions: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import lance  # in the worker, which was forked: Lance does not survive a fork

            dataset = lance.dataset(uri, version=version, storage_options=options)
            for batch in positions:
                for position in batch.column(0).to_pylist():
                    yield from dataset.get_fragment(fragments[position]).to_batches(columns=columns)

        return read

    def get(self, **key: Any) -> dict[str, Any] | None:
        """The row of one group, or None if the view has none.

        Args:
            key: a value for every column of `key`; None finds the group of nulls.

        Raises:
            UsageError: the view has no key, other columns are needed, or a value is not of its column's type.

        Example:
            >>> snapshot.view("by_carrier").get(carrier="AA")  # doctest: +SKIP
        """
        dataset = self.lance()
        if not self._key or KEY_COLUMN not in dataset.schema.names:
            raise UsageError(f"view {self.name!r} has no key to look a row up by: filter to_arrow() instead")
        if key.keys() != set(self._key):
            raise UsageError(
                f"view {self.name!r} is looked up by {', '.join(self._key)}; given: {', '.join(key) or '-'}"
            )
        values = [self._key_value(column, key[column]) for column in self._key]
        text = group_keys(values)[0].as_py().replace("'", "''")
        rows = self._read(f"{KEY_COLUMN} = '{text}'").to_pylist()
        return rows[0] if rows else None

    def _read(self, condition: str | None = None) -> pa.Table:
        try:
            return self.lance().to_table(columns=self.schema.names, filter=condition)
        except (OSError, ValueError) as error:
            reason = storage_error(error, self._location)
            raise (self._expired() if isinstance(reason, NotFoundError) else reason) from error

    def _expired(self) -> EpochExpiredError:
        return EpochExpiredError(
            f"version {self._version.version} of view {self.name!r} at {self._location} is no longer retained: take a "
            "new snapshot; a tag or a pin keeps an epoch, and a longer retention all of them"
        )

    def _key_value(self, column: str, value: Any) -> pa.Array:
        data_type = self.lance().schema.field(column).type
        try:
            return pa.array([value], data_type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
            raise UsageError(
                f"{column}={value!r} is no {data_type}, the type of that column in view {self.name!r}"
            ) from error
