"""The expiry of rows: of joins by watermarks, and of any view by a time to live."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from actors.schemas.metadata_columns import PATH, ROW
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.epoch_timestamps import EpochTimestamps
from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.operators.join.join_plan import JoinPlan
from spark_bridge.operators.scalar_subquery.single_values import (
    has_single_values,
)
from spark_bridge.operators.temporal_filter.temporal_filter_plan import TemporalFilterPlan
from spark_bridge.plans.expiry import EventTime, Expiry
from spark_bridge.plans.operator_plan import OperatorPlan
from spark_bridge.plans.view_definition import BY_TTL, EXPIRING
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.query.declared_view import DeclaredView
from spark_bridge.query.plain_plan import require_own_leaves
from state.errors import ViewError


class RowExpiry:
    """Decides which rows of one view expire, and when.

    Args:
        named: the sources and views that the view reads.
    """

    def __init__(self, catalyst: Catalyst, declared: DeclaredView, named: Collection[str]) -> None:
        self._catalyst, self._trees, self._declared, self._named = catalyst, catalyst.trees, declared, named

    def of_joins(self, parents: Collection[str], computed: Mapping[str, OperatorPlan]) -> dict[str, Expiry]:
        """Internal view → expiry of its rows, for each side of the joins with bounds.

        Args:
            parents: the views that it reads.
            computed: internal leaf → its operator.

        Raises:
            ViewError: no row can expire, or expired rows would be missed; with what to write instead.
        """
        if parents:
            what = f"it reads view {' and '.join(parents)}"
            raise self._cannot_expire(what, "join sources, and let another view read this one")
        joins = [each for each in computed.values() if isinstance(each, JoinPlan)]
        expiring = [each for each in joins if each.between is not None]
        if not expiring:
            raise self._without_bounds(joins)
        expiries: dict[str, Expiry] = {}
        for join in expiring:
            for side, expiry in join.expiries:
                needed = expiry.needed | expiries.get(side, expiry).needed
                expiries[side] = Expiry(expiry.time, needed)
        for expiry in expiries.values():
            self._require_expiring(expiry.time)
        for leaf in computed.values():
            if leaf not in expiring and not expiries.keys().isdisjoint(leaf.sides):
                advice = "bound the event times of that join too, or make it a view of its own"
                raise self._cannot_expire("rows that it joins with bounds are joined without bounds as well", advice)
        return expiries

    def time_of(self, plan: Plan, views: Collection[str], leaves: Mapping[int, str]) -> EventTime:
        """The event time by which the rows of a view without a join expire, by a time to live.

        Raises:
            ViewError: no event time applies to all rows, or the view has options that exclude a time to live; with what
                to write instead.
        """
        if self._declared.definition.emit is not None:
            raise self._cannot_expire(
                'emit="on_close" already closes groups by the watermark', "leave one of the two out"
            )
        if self._declared.definition.expire is not None:
            raise self._cannot_expire('it has expire="by_watermark" and no join', "leave expire out")
        if views:
            raise self._cannot_expire(f"it reads view {' and '.join(views)}", "declare it over the source")
        sources = dict.fromkeys(self._named)
        if len(sources) > 1:
            advice = "declare a view with a ttl over each, and let another view put them together"
            raise self._cannot_expire(f"it reads {' and '.join(sources)}", advice)
        [source] = sources
        if source in self._declared.keys:
            raise self._cannot_expire(
                f"source {source} has a key", "leave ttl out: later rows with the same key replace its rows"
            )
        if source not in self._declared.event_times:
            raise self._cannot_expire(f"source {source} has no event time", 'declare it with event_time="at"')
        if has_single_values(self._trees, plan):
            advice = "declare a view with a ttl for the rows, and let another view compare them"
            raise self._cannot_expire("it compares rows with the value of a subquery", advice)
        require_own_leaves(self._trees, self._declared.name, plan, leaves)
        if EpochTimestamps(self._catalyst).are_in(plan):
            advice = "leave one of the two out: a ttl follows the watermark, and now() the clock"
            raise self._cannot_expire("it uses the time of the epoch", advice)
        return EventTime(source, self._declared.event_times[source])

    def of_ages(self, aging: EventTime, computed: dict[str, OperatorPlan]) -> dict[str, Expiry]:
        """Internal view → expiry of its rows by a time to live; the filters in `computed` follow a watermark then."""
        ttl_us, expiries = self._declared.definition.ttl_us, dict[str, Expiry]()
        assert ttl_us is not None
        for name, leaf in list(computed.items()):
            if isinstance(leaf, TemporalFilterPlan):
                text = f"the rows with {aging.column} at most {self._declared.definition.ttl_text} before the watermark"
                identity = f"{leaf.bounds[0].column} by {BY_TTL}{ttl_us} us of {aging.source}"
                computed[name] = replace(leaf, clock=aging.source, text=text, identity=identity)
                column = EventTime(aging.source, leaf.bounds[0].column)
                expiries[leaf.rows] = Expiry(column, frozenset({(aging.source, ttl_us)}), ages=True)
        return expiries

    def _without_bounds(self, joins: Sequence[JoinPlan]) -> ViewError:
        if not joins:
            return self._cannot_expire("it joins no rows", f"leave {self._expire_option} out")
        for source in self._named:
            if source in self._declared.keys:
                advice = f"leave {self._expire_option} out: later rows with the same key replace its rows"
                return self._cannot_expire(f"source {source} has a key", advice)
            if source not in self._declared.event_times:
                return self._cannot_expire(f"source {source} has no event time", 'declare it with event_time="at"')
            kind = self._declared.columns_of(source).field(self._declared.event_times[source]).type
            if not pa.types.is_timestamp(kind):
                advice = "declare a schema in which it is a timestamp"
                return self._cannot_expire(f"the event time of source {source} is a date", advice)
        if self._declared.definition.ttl is not None:
            what = "no join has a timestamp that is an event time on either side"
            return self._cannot_expire(
                what, "join sources with event times; in EXISTS and IN, bound the times yourself"
            )
        times = " and ".join(dict.fromkeys(f"{name}.{self._declared.event_times[name]}" for name in self._named))
        return self._cannot_expire(
            f"no join bounds the difference of two event times, of {times}, on both sides",
            "add to its condition, with the columns as they are, "
            "a.at BETWEEN b.at - INTERVAL 1 HOUR AND b.at + INTERVAL 1 HOUR",
        )

    def _require_expiring(self, time: EventTime) -> None:
        source = time.source
        if source in self._declared.materialized:
            advice = "declare it without materialize=True and on_change"
            raise self._cannot_expire(f"rows of source {source} can be replaced or forgotten", advice)
        if not {PATH, ROW} <= {*self._declared.columns_of(source).names}:
            advice = 'declare the source with metadata=("path", "row"), by which late rows are kept'
            raise self._cannot_expire(f"source {source} has no {PATH} and {ROW}", advice)

    def require_kept_groups(self, plans: Iterable[ViewPlan]) -> None:
        """Refuses groups of rows that may leave, which may be computed again from rows that have expired.

        Raises:
            ViewError: with what to write instead.
        """
        advice = "let another view group the rows of this one"
        for each in (plan for plan in plans if plan.view_class == "aggregate"):
            joins = [leaf for leaf in each.computed.values() if isinstance(leaf, JoinPlan)]
            expiring = [join for join in joins if join.between is not None]
            for join in expiring:
                if join.kind != "inner":
                    raise self._cannot_expire(f"it groups the rows of a join ({join.text})", advice)
                if len(expiring) < len(each.columns):
                    raise self._cannot_expire("it groups the rows of a join together with other rows", advice)

    def _cannot_expire(self, what: str, advice: str) -> ViewError:
        return ViewError(f"view {self._declared.name!r} cannot have {self._expire_option}, as {what}: {advice}")

    @property
    def _expire_option(self) -> str:
        ttl = self._declared.definition.ttl_text
        return 'expire="by_watermark"' if self._declared.definition.ttl is None else f'ttl="{ttl}"'


def expiring(plan: ViewPlan, expiry: Expiry, whole: str) -> ViewPlan:
    """The plan of an internal view with expiry.  No other view shares it: another view would miss the expired rows."""
    needed = ", ".join(f"{source} {us}" for source, us in sorted(expiry.needed))
    if expiry.ages:
        identity = f"{plan.identity}\n{expiry.time.column} by {BY_TTL}{needed}"
        return replace(plan, content=None, identity=identity, expiry=expiry)
    columns = {source: used | {PATH, ROW} for source, used in plan.columns.items()}
    identity = f"{plan.identity}\n{EXPIRING} {expiry.time.column} {needed}\nof {whole}"
    return replace(plan, columns=columns, identity=identity, content=None, expiry=expiry)
