"""The views of an epoch that follow watermarks: what each has followed by then, beside its query.

The version of a view records the watermark up to which its windows are closed, and the number of its late rows; the
quarantine keeps these rows, each with the watermark that it missed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import pyarrow as pa

from actors.schemas.metadata_columns import PATH, ROW
from actors.sources.event_time import microseconds
from actors.sources.source import event_columns
from slackwater.reading.recorded_source import RecordedSource
from slackwater.verification.engine import CannotComputeError
from spark_bridge.ingest.followed_watermarks import closed_until
from spark_bridge.maintenance.derived_views import aged_to
from spark_bridge.maintenance.recomputation import MISSED, Followed
from spark_bridge.plans.view_definition import BY_TTL, BY_WATERMARK, EXPIRING, ON_CLOSE
from state.errors import SettingsError
from state.store.store import StateStore
from state.tables.records import CatalogView, EpochRecord
from state.tables.stored_rows import declared_name
from state.upkeep.quarantine import late_rows, missed_watermark

_PLACES = pa.schema([(PATH, pa.string()), (ROW, pa.int64()), (MISSED, pa.int64())])
_TTL = re.compile(rf"^{BY_TTL}(.+)(\n{BY_WATERMARK})?\Z", re.MULTILINE)


class RecordedWatermarks:
    """Finds what views have followed.

    Args:
        store: a handle on the store.
        record: the record of the epoch.
        views: the views of the catalog, by name, internal views too.
        sources: name → source.
    """

    def __init__(
        self,
        store: StateStore,
        record: EpochRecord,
        views: Mapping[str, CatalogView],
        sources: Mapping[str, RecordedSource],
    ) -> None:
        self._store, self._record, self._views, self._sources = store, record, views, sources

    def of(self, names: Collection[str]) -> tuple[dict[str, Followed], dict[str, str]]:
        """The watermarks that these views, and the views that they read, have followed.

        Returns:
            View → the watermarks that it has followed, and view → the reason why they are not known.
        """
        followed: dict[str, Followed] = {}
        unknown: dict[str, str] = {}
        ahead, seen = [*names], set[str]()
        while ahead:
            name = ahead.pop()
            if name in seen or name not in self._views:
                continue
            seen.add(name)
            view = self._views[name]
            ahead += view.views
            try:
                # A recomputed view reflects an epoch in which it may not have been there yet.
                if _follows(view) and name not in self._record.views:
                    raise CannotComputeError(f"epoch {self._record.epoch} does not have it")
                if view.definition.endswith(ON_CLOSE):
                    followed[name] = self._closing(view)
                elif view.definition.endswith(BY_WATERMARK):
                    followed[name] = self._expiring(view)
                elif BY_TTL in view.identity and (ttl_us := _ttl_us(view)) is not None:
                    followed[name] = self._aging(view, ttl_us)
            except CannotComputeError as error:
                unknown[name] = str(error)
        return followed, unknown

    def _closing(self, view: CatalogView) -> Followed:
        version = self._record.views[view.name]
        [source] = view.sources
        late, num_late = self._late(view, source), version.noted.get("late", 0)
        # A row is late once for each of its windows.
        if late.num_rows > num_late or (late.num_rows == 0) != (num_late == 0):
            raise _lost(num_late)
        return Followed({source: late}, True, closed_until(version), num_late)

    def _expiring(self, view: CatalogView) -> Followed:
        late = {}
        for source in view.sources:
            found = self._late(view, source)
            counts = [
                self._record.views[name].noted.get("late", 0)
                for name, side in self._views.items()
                if name in self._record.views and _is_side(view, side) and side.sources == (source,)
            ]
            places = found.group_by([PATH, ROW]).aggregate([]).num_rows
            # A row is late once for each side that has it, and kept once for all that show the same of it.
            if found.num_rows != sum(counts) and places != max(counts, default=0):
                raise _lost(sum(counts))
            if found.num_rows:
                self._require_no_other_rows(view, source)
                late[source] = found
        return Followed(late, ttl_us=_ttl_us(view), event_times=self._event_times)

    def _aging(self, view: CatalogView, ttl_us: int) -> Followed:
        at = aged_to(view.name, self._record.views)
        least = {} if at is None else dict.fromkeys(view.sources, at - ttl_us)
        return Followed(event_times=self._event_times, least_us=least)

    @property
    def _event_times(self) -> dict[str, str]:
        return event_columns(each.definition for each in self._sources.values())

    def _require_no_other_rows(self, view: CatalogView, source: str) -> None:
        """Refuses a view in which late rows of a source count in another place of its query."""
        for each in self._views.values():
            reads = declared_name(each.name) == view.name and source in each.sources and not each.internal_views
            if reads and not _is_side(view, each):
                raise CannotComputeError(
                    f"its query reads {source} beside the join too, where the late rows of {source} count"
                )

    def _late(self, view: CatalogView, source: str) -> pa.Table:
        """The late rows of a source that the quarantine keeps, of the view as it was built last."""
        after, version = view.created_epoch - 1, self._record.state_version
        found = late_rows(self._store, source, [view.name], after, state_version=version)
        missed = [missed_watermark(reason) for reason in found["reason"].to_pylist()]
        if None in missed:
            raise CannotComputeError("the quarantine has a late row of it without its watermark")
        url = self._sources[source].definition.location.url
        paths = [f"{url}/{path}" for path in found["path"].to_pylist()]
        columns = [pa.array(paths, pa.string()), found["row"].combine_chunks(), pa.array(missed, pa.int64())]
        return pa.Table.from_arrays(columns, schema=_PLACES)


def _follows(view: CatalogView) -> bool:
    """True if the rows of a view depend on watermarks."""
    return view.definition.endswith((ON_CLOSE, BY_WATERMARK)) or BY_TTL in view.identity


def _is_side(view: CatalogView, side: CatalogView) -> bool:
    """True if `side` is an internal view of `view`, and its rows expire."""
    return declared_name(side.name) == view.name and side.name != view.name and EXPIRING in side.identity


def _ttl_us(view: CatalogView) -> int | None:
    """The time to live of a view, in microseconds; None for a view without."""
    found = _TTL.search(view.definition)
    if found is None:
        return None
    try:
        return microseconds("ttl", found[1])
    except SettingsError:
        raise CannotComputeError(f"invalid time to live in the root: {found[1]!r}") from None


def _lost(num_late: int) -> CannotComputeError:
    return CannotComputeError(
        f"the quarantine lacks some of its {num_late:,} late rows, which were cleared: verify an epoch from before, or "
        "rebuild the view (slackwater retry --view)"
    )
