"""What each view of a pipeline is, without running it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from actors.files import FileVersion
from actors.objects.object_store import ObjectStore
from actors.recovery.recovery import check
from actors.sources.path_filter import PathFilter
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import SourceDefinition
from slackwater.planning.rows_touched import RowsTouched
from slackwater.planning.shown_schema import shown_schema
from spark_bridge.analysis.analysis import SourceWithoutSchemaError, analyse
from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.session.session import session_at_hand
from spark_bridge.session.settings import SparkSettings
from state.clock import Clock
from state.errors import NotIncrementalError
from state.lance.lance_root import LanceRoot
from state.tables.fingerprint import version_fingerprint

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
    """Analyses views with the Spark of this process, or a local one; reads at most eight files per source.

    Raises:
        ViewError: a view cannot be built.
        UsageError: the declaration does not fit the root.
        StorageError: a bucket cannot be reached.
    """
    root = LanceRoot(definition.root, clock)
    schemas, touched = check(definition, root), RowsTouched(root)
    found = {
        source.name: schemas.get(source.name) or shown_schema(source, definition.fetch, _listed(source))[0]
        for source in definition.sources
    }
    materialized = [source.name for source in definition.sources if source.materialize]
    with session_at_hand(spark_settings, f"slackwater-explain-{definition.name}") as spark:
        return tuple(_explain(spark, view, found, materialized, touched) for view in views)


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


def _listed(source: SourceDefinition) -> Iterator[FileVersion]:
    """The files that a source takes, in the order of their listing."""
    accepts = PathFilter(source.pattern).accepts
    for page in ObjectStore(source.location).list_pages():
        for path, etag, size, last_modified in page.objects():
            if accepts(path):
                version = version_fingerprint(etag, size, last_modified)
                yield FileVersion(source.name, path, version, etag, size, last_modified)
