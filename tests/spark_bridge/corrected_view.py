"""A view over files that are replaced and forgotten, and Spark's own answer over the present files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block, Correction, StoredBlock
from spark_bridge.ingest.epoch_rows import EpochViews
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.lance.fragment_stager import FragmentStager
from state.tables.fingerprint import path_fingerprint
from state.tables.records import CatalogView
from state.tables.stored_rows import FILE_FIELD, LINEAGE, stored_rows_name, stored_rows_path
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.random_rows import SCHEMA

Files = Mapping[tuple[str, str], pa.Table]
"""(source, path) -> rows."""


class CorrectedView(FollowedView):
    """One view over materialized sources; its rows must be those of `files`.

    Attributes:
        watermarks: source → its watermark in the next epoch, in microseconds since 1970.
    """

    watermarks: Mapping[str, int] = MappingProxyType({})

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        definition: ViewDefinition,
        sources: Sequence[str] = ("t",),
        schema: pa.Schema | Mapping[str, pa.Schema] = SCHEMA,
    ) -> None:
        schemas = dict.fromkeys(sources, schema) if isinstance(schema, pa.Schema) else schema
        super().__init__(spark, root, definition, schemas)
        self.files: dict[tuple[str, str], pa.Table] = {}
        self.catalog: dict[str, CatalogView] = {}
        self._versions = 0

    def new_materializer(self) -> Materializer:
        materializer = Materializer(self.spark, self.root, materialized=self.schemas, replacing=self.schemas)
        self.plan = materializer.declare([self.definition], self.schemas, {}).plans[self.definition.name]
        return materializer

    def correct(self, new: Files, replaced: Mapping[tuple[str, str], pa.Table | None]) -> EpochViews:
        """Runs an epoch with new and replaced files; a file that is replaced by None is forgotten."""
        self.epoch += 1
        blocks: dict[str, list[Block]] = {}
        for (source, path), rows in new.items():
            blocks.setdefault(source, []).append(self._block(source, path, rows))
        corrections = [self._correction(*file, rows) for file, rows in replaced.items()]
        done = self.materializer.run_epoch(self.epoch, blocks, corrections, self.watermarks)
        self.views = done.views
        self.catalog |= {each.name: each for each in done.created}
        self.files = {**self.files, **new}
        for file, table in replaced.items():
            self.files.pop(file, None)
            if table is not None:
                self.files[file] = table
        for source in self.schemas:
            own = [rows for (name, _), rows in self.files.items() if name == source]
            self.rows[source] = pa.concat_tables([self.schemas[source].empty_table(), *own], promote_options="default")
        return done

    def stored_files(self, source: str) -> dict[str, int]:
        """Path → number of its stored rows."""
        version = self.views[stored_rows_name(source)]
        dataset = FollowedView.open(self.root, version)
        counts: dict[str, int] = {}
        for path in dataset.to_table(columns=["__sw_path"])["__sw_path"].to_pylist():
            counts[path] = counts.get(path, 0) + 1
        return counts

    def _block(self, source: str, path: str, rows: pa.Table) -> Block:
        seen = with_file(source, path, rows)
        used = self.materializer.columns().get(source)
        if used is not None:
            seen = seen.select([name for name in seen.column_names if name in used])
        stored = self._staged(source, path, rows)
        return Block("test", source, seen, rows.num_rows, seen.nbytes, tuple(seen.column_names), stored)

    def _correction(self, source: str, path: str, rows: pa.Table | None) -> Correction:
        if rows is None:
            return Correction(source, path)
        step = max(1, rows.num_rows // 2)
        pieces = [rows.slice(start, step) for start in range(0, rows.num_rows, step)]
        return Correction(source, path, b"12345678", tuple(self._staged(source, path, piece) for piece in pieces))

    def _staged(self, source: str, path: str, rows: pa.Table) -> StoredBlock:
        self._versions += 1
        count = rows.num_rows
        lineage = [pa.repeat(path, count), pa.repeat(pa.scalar(self._versions, pa.int64()), count), range(count)]
        arrays = [pa.array(values, field.type) for values, field in zip(lineage, LINEAGE, strict=True)]
        table = pa.Table.from_arrays(
            [*arrays, *(column.combine_chunks() for column in rows.columns)], schema=pa.schema([*LINEAGE, *rows.schema])
        )
        place = stored_rows_path(source, 1)
        return StoredBlock(place, table.schema, FragmentStager(self.root.child(place)).stage(table))


def with_file(source: str, path: str, rows: pa.Table) -> pa.Table:
    """Rows with the fingerprint of their file."""
    files = pa.repeat(pa.scalar(path_fingerprint(source, path), FILE_FIELD.type), rows.num_rows)
    return rows.append_column(FILE_FIELD, files)
