"""Which views can follow files whose rows are replaced or taken out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from spark_bridge.analysis.view_plan import AGGREGATE, APPEND, ViewPlan
from spark_bridge.catalyst.epoch_timestamps import uses_epoch_timestamps
from state.errors import ViewError
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD


def require_correctable(
    root: Location,
    plans: Iterable[ViewPlan],
    versions: Mapping[str, ViewVersion],
    materialized: Collection[str],
    replacing: Collection[str],
) -> None:
    """Refuses views that cannot follow a source that replaces its changed files.

    Args:
        root: where the pipeline writes.
        plans: of the declared views.
        versions: of those that go on from there.
        materialized: the sources whose rows are stored.
        replacing: the sources that replace.

    Raises:
        ViewError: naming what to declare instead.
    """
    for plan in plans:
        read = sorted({*replacing}.intersection(plan.sources))
        apart = sorted({*plan.sources} - {*materialized})
        if read and apart:
            raise ViewError(
                f'view {plan.name!r} reads {read[0]}, which has on_change="replace", and {", ".join(apart)}, whose '
                "rows are not stored: declare each source with materialize=True"
            )
        if read and plan.view_class == AGGREGATE and uses_epoch_timestamps(plan.identity):
            raise ViewError(cannot_compute_again(plan.name))
        if read and plan.view_class == APPEND and not follows_files(root, versions.get(plan.name)):
            raise ViewError(cannot_follow(plan.name))


def follows_files(root: Location, version: ViewVersion | None) -> bool:
    """Whether each row of an append view says which file it is from, or will, since there is none yet."""
    if version is None:
        return True
    return FILE_FIELD.name in open_dataset(root.child(version.path), version.version).schema.names


def cannot_follow(name: str) -> str:
    """Why a view that was made before each of its sources was materialized cannot be corrected."""
    return (
        f"view {name!r} does not know which file a row is from, so that files cannot be replaced or forgotten: declare "
        "it with replace=True, which builds it anew"
    )


def cannot_compute_again(name: str) -> str:
    """Why a view cannot be corrected whose groups depend on when their rows were ingested."""
    return (
        f"view {name!r} uses the time of epochs, and its groups could not be computed again, so that files cannot be "
        "replaced or forgotten: let it use a column of the rows"
    )
