"""Every Arrow type that is not refused arrives in Spark, and comes back, as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import ray
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block
from spark_bridge.engine.catalyst.arrow_frames import table_of_frame
from spark_bridge.ingest.blocks import rows_of_blocks
from tests.actors.formats.carried_types import has_form, read
from tests.actors.formats.generated_types import columns, said

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("types")


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(found=columns(most_columns=24, num_rows=4))
def test_values_survive_the_way_to_spark_and_back(
    found: dict[str, pa.Array], session: SparkSession, directory: Path
) -> None:
    carried = {name: column for name, column in found.items() if has_form(name, column)}
    if not carried:
        return
    rows = read(carried | {"row": pa.array(range(4))}, directory)
    held = _blocks(rows)
    # Blocks come in an order of their own.
    back = table_of_frame(rows_of_blocks(session, rows.schema, held).frame, rows.schema).sort_by("row")
    for name, column in carried.items():
        assert said(back[name].to_pylist()) == said(rows[name].to_pylist()), f"{column.type} as {rows[name].type}"


def _blocks(table: pa.Table) -> list[Block]:
    blocks = []
    for part in (table.slice(0, 1), table.slice(1)):
        sink = pa.BufferOutputStream()
        rows: Any = part.combine_chunks()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        reference = ray.put(sink.getvalue().to_pybytes())
        blocks.append(Block("test", "t", reference, rows.num_rows, rows.nbytes, tuple(rows.column_names)))
    return blocks
