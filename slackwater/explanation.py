"""What each view of a pipeline is, without running it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from actors.messages import FileVersion
from actors.object_store import ObjectStore
from actors.path_filter import PathFilter
from actors.pipeline_definition import PipelineDefinition
from actors.read_errors import EmptyFile, ObjectChanged, ObjectVanished, UnreadableFile
from actors.recovery import check
from actors.schema_sample import SAMPLE_FILES, SchemaSample
from actors.source import SourceDefinition
from actors.source_reader import SourceReader
from slackwater.rows_touched import RowsTouched
from spark_bridge.analysis import SourceWithoutSchemaError, analyse
from spark_bridge.session import SparkSettings, start_local_session
from spark_bridge.view_definition import ViewDefinition
from state.clock import Clock
from state.errors import NotIncrementalError, SchemaError
from state.fingerprint import version_fingerprint
from state.lance_root import LanceRoot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ViewExplanation:
    """One view.

    Args:
        view_class: `append`, `aggregate`, `full`, `refused`, or `unknown` while a source has neither schema nor file.
        text: why, what is stored, what an epoch costs, and how many rows it touches.
    """

    name: str
    view_class: str
    text: str


def explain(
    definition: PipelineDefinition, views: Sequence[ViewDefinition], spark_settings: SparkSettings, clock: Clock
) -> tuple[ViewExplanation, ...]:
    """Analyses views with a Spark of their own; reads at most eight files per source, for its schema.

    Raises:
        ViewError: a view cannot be built.
        UsageError: the declaration does not fit the root.
        StorageError: a bucket cannot be reached.
    """
    root = LanceRoot(definition.root, clock)
    schemas, touched = check(definition, root), RowsTouched(root)
    found = {
        source.name: schemas.get(source.name) or _shown_schema(source, definition) for source in definition.sources
    }
    spark = start_local_session(spark_settings, f"slackwater-explain-{definition.name}")
    try:
        materialized = [source.name for source in definition.sources if source.materialize]
        return tuple(_explain(spark, view, found, materialized, touched) for view in views)
    finally:
        spark.stop()


def _explain(
    spark: SparkSession,
    view: ViewDefinition,
    schemas: Mapping[str, pa.Schema | None],
    materialized: Collection[str],
    touched: RowsTouched,
) -> ViewExplanation:
    try:
        plan = analyse(spark, view, schemas, materialized)
    except NotIncrementalError as error:
        return ViewExplanation(view.name, "refused", str(error))
    except SourceWithoutSchemaError as error:
        return ViewExplanation(view.name, "unknown", str(error))
    text = f"{plan.explain()}\n  touches    {touched.text(plan)}"
    return ViewExplanation(view.name, plan.view_class, text.partition("\n")[2])


def _shown_schema(source: SourceDefinition, definition: PipelineDefinition) -> pa.Schema | None:
    """The schema as a run would take it."""
    accepts = PathFilter(source.pattern).accepts
    reader = SourceReader(source, None, definition.fetch)
    for page in ObjectStore(source.location).list_pages():
        objects = [each for each in page.objects() if accepts(each[0])]
        for start in range(0, len(objects), SAMPLE_FILES):
            sample = SchemaSample(source, 0)
            for path, etag, size, last_modified in objects[start : start + SAMPLE_FILES]:
                version = version_fingerprint(etag, size, last_modified)
                sample.add(path, _shown(reader, FileVersion(source.name, path, version, etag, size, last_modified)))
            if sample.shows_something:
                return sample.schema()
    return None


def _shown(reader: SourceReader, file: FileVersion) -> pa.Schema | SchemaError | None:
    try:
        return reader.open(file).infer_schema()
    except SchemaError as error:
        return error
    except (EmptyFile, ObjectChanged, ObjectVanished, UnreadableFile):
        return None
