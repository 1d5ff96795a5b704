"""Corrections of files against views: the views that cannot follow a replaced or removed file are refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from spark_bridge.engine.catalyst.epoch_timestamps import uses_epoch_timestamps
from spark_bridge.plans.view_plan import ViewPlan
from state.errors import ViewError
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD, ORIGIN_FIELD, declared_name


def require_correctable(
    root: Location,
    plans: Iterable[ViewPlan],
    versions: Mapping[str, ViewVersion],
    materialized: Collection[str],
    replacing: Collection[str],
) -> None:
    """Refuses a view over a source with `on_change="replace"` if the view cannot follow it.

    Args:
        root: the directory of the pipeline.
        versions: name → version of each view that continues from it.
        materialized: the sources whose rows are stored.
        replacing: the sources with `on_change="replace"`.

    Raises:
        ViewError: with the declaration to use instead.
    """
    for plan in plans:
        if plan.parents:
            continue  # it follows the changes of its parents, whatever they come from
        name, read = declared_name(plan.name), sorted({*replacing}.intersection(plan.sources))
        apart = sorted({*plan.sources} - {*materialized})
        if read and apart:
            raise ViewError(
                f'view {name!r} reads {read[0]}, which has on_change="replace", and {", ".join(apart)}, whose '
                "rows are not stored: declare each source with materialize=True"
            )
        if read and plan.view_class == "aggregate" and uses_epoch_timestamps(plan.identity):
            raise ViewError(cannot_compute_again(name))
        if read and plan.view_class == "append" and not follows_files(root, versions.get(plan.name)):
            raise ViewError(cannot_follow(name))


def follows_files(root: Location, version: ViewVersion | None) -> bool:
    """Whether each row of an append view names its file, or its row of a parent; true for a view without a dataset."""
    if version is None:
        return True
    names = open_dataset(root.child(version.path), version.version).schema.names
    return FILE_FIELD.name in names or ORIGIN_FIELD.name in names


def cannot_follow(name: str) -> str:
    """The message for a view that is older than `materialize=True` of its sources."""
    return (
        f"view {name!r} does not know the file of a row, so files cannot be replaced or forgotten: declare it with "
        "replace=True, which rebuilds it"
    )


def cannot_compute_again(name: str) -> str:
    """The message for an aggregate view that uses the time of ingestion."""
    return (
        f"view {name!r} uses the time of epochs, so its groups cannot be computed again, and files cannot be replaced "
        "or forgotten: use a column of the rows instead"
    )
