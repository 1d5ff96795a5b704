"""The expectations of views, epoch after epoch: their violating rows are counted at the cost of the changed rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.expectations.release import Release
from slackwater.expectations.view_facts import Records, ViewFacts
from slackwater.expectations.view_rows import OpenRows, VersionRows
from slackwater.reading.changes.view_difference import surplus
from spark_bridge.plans.view_conditions import ViewCondition
from state.errors import DamagedStoreError, EpochExpiredError, NotFoundError, ViewError, ViewFailedError
from state.tables.expectations import MOST_NAMED, Expectation, OnViolation, ViewExpectations
from state.tables.fingerprint import text_fingerprint
from state.tables.group_key import KEY_COLUMN
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD


class Conditions(Protocol):
    """Conditions over rows, see `spark_bridge.plans.row_conditions.RowConditions`."""

    def unfulfilled(self, rows: pa.Table) -> tuple[dict[str, pa.Array], dict[str, str]]: ...


class Declared(Protocol):
    """The expectations in the declaration of a view, see `spark_bridge.plans.view_definition.ViewDefinition`."""

    @property
    def row_conditions(self) -> Mapping[str, str]: ...

    @property
    def view_conditions(self) -> Mapping[str, ViewCondition]: ...

    @property
    def on_violation(self) -> OnViolation: ...


_OF_ONE_VIEW = (ViewFailedError, ViewError, NotFoundError, DamagedStoreError)
MakeConditions = Callable[[str, pa.Schema, Mapping[str, str]], Conditions]
"""Makes the conditions over a view: (its name, the columns of its rows, name → condition) -> conditions."""


class ExpectationCounts:
    """The expectations of all views of an attempt.

    Args:
        open_rows: opens the rows of a view at a version.
        known: the expectations as of the last commit.
        versions: the views as of the last commit.
        make_conditions: makes the conditions over a view.
        release: of the run, which has recovered it.
    """

    def __init__(
        self,
        open_rows: OpenRows,
        known: Mapping[str, ViewExpectations],
        versions: Mapping[str, ViewVersion],
        make_conditions: MakeConditions,
        release: Release,
    ) -> None:
        self._open, self._known, self._make = open_rows, dict(known), make_conditions
        self._versions: Mapping[str, ViewVersion] = dict(versions)
        self._conditions: dict[str, tuple[Mapping[str, str], str, Conditions]] = {}
        self._overall: dict[str, ViewFacts] = {}
        self._release = release
        # By a merge; or its condition has failed, and this attempt tries once more.
        self._is_uncounted = any(each.error for view in known.values() for each in view.expectations.values())

    @property
    def views(self) -> Mapping[str, ViewExpectations]:
        """View → its expectations, as of the last epoch that was counted."""
        return self._known

    def release(self) -> None:
        """The next epoch accepts the rows that violate now."""
        self._release.ask()

    def has_news(self, declared: Mapping[str, Declared]) -> bool:
        """True if the next epoch has other expectations, even if no row changes."""
        wanted = {
            name: (_texts(each), each.on_violation)
            for name, each in declared.items()
            if name in self._versions and _texts(each)
        }
        known = {name: (each.conditions, each.on_violation) for name, each in self._known.items()}
        return self._release.is_due or self._is_uncounted or wanted != known

    def after_epoch(
        self,
        epoch: int,
        declared: Mapping[str, Declared],
        versions: Mapping[str, ViewVersion],
        keys: Mapping[str, Sequence[str]],
        records: Mapping[str, Records] = MappingProxyType({}),
    ) -> dict[str, ViewExpectations | None]:
        """Counts the rows that an epoch has changed.

        Args:
            declared: the declaration of each view.
            versions: all views as of the epoch.
            keys: view → the columns that identify a row; empty without groups.
            records: view → the records that came in the epoch from its sources.

        Returns:
            View → its expectations, where they have changed; None for a view that has none any more.

        Raises:
            StorageError: the store does not answer.
        """
        before = self._known
        if self._release.take(epoch):
            self._known = {name: each.released(epoch) for name, each in self._known.items()}
        self._is_uncounted = False
        self._known = {
            name: self._alone(epoch, name, each, versions[name], keys.get(name, ()), records.get(name, Records()))
            for name, each in declared.items()
            if name in versions and _texts(each)
        }
        self._versions = dict(versions)
        gone = {name: None for name in before if name not in self._known}
        return gone | {name: each for name, each in self._known.items() if before.get(name) != each}

    def _alone(
        self,
        epoch: int,
        name: str,
        declared: Declared,
        version: ViewVersion,
        key: Sequence[str],
        records: Records,
    ) -> ViewExpectations:
        """The expectations of a view.  An expectation that cannot be computed has an error; the epoch continues."""
        try:
            return self._view(epoch, name, declared, version, key, records)
        except _OF_ONE_VIEW as error:
            reason, known = str(error), self._known.get(name)
            stored = {} if known is None else known.expectations
            failed = {
                each: replace(stored.get(each, Expectation(condition)), condition=condition, error=reason)
                for each, condition in _texts(declared).items()
            }
            base = known or ViewExpectations(name, declared.on_violation, {})
            counted = replace(base, on_violation=declared.on_violation, expectations=failed)
            return counted.settled(epoch, None)

    def _view(
        self,
        epoch: int,
        name: str,
        declared: Declared,
        version: ViewVersion,
        key: Sequence[str],
        records: Records,
    ) -> ViewExpectations:
        known, earlier = self._known.get(name), self._versions.get(name)
        base = replace(known or ViewExpectations(name, declared.on_violation, {}), on_violation=declared.on_violation)
        before = self._open(earlier) if earlier is not None and earlier.path == version.path else None
        if before is not None and before.version.version == version.version:
            after = before
        else:
            after = self._open(version)
        counted = self._counted(base, declared.row_conditions, before, after, key)
        overall = self._overall.setdefault(name, ViewFacts())
        expectations = dict(counted.expectations)
        for each, condition in declared.view_conditions.items():
            expectations[each] = overall.judged(condition, base.expectations.get(each), before, after, epoch, records)
        counted = replace(counted, expectations=expectations)
        return counted.settled(epoch, _came_in(epoch, base, counted))

    def _counted(
        self,
        base: ViewExpectations,
        conditions: Mapping[str, str],
        before: VersionRows | None,
        after: VersionRows,
        key: Sequence[str],
    ) -> ViewExpectations:
        """The conditions over rows, counted over a version of a view.

        Args:
            base: the expectations as of the version before.
            conditions: name → condition.
            before: that version, if the rows are in the same dataset.
            key: the columns that identify a row; empty without groups.
        """
        known = {name: each for name, each in base.expectations.items() if conditions.get(name) == each.condition}
        base = replace(base, expectations={name: each for name, each in known.items() if each.error is None})
        if not conditions:
            return replace(base, expectations={}, files={})
        if before is after and len(base.expectations) == len(conditions):
            return base
        rows = _ViewRows(after, self._conditions_of(base.view, conditions, after.columns), key)
        followed = base if before is after else rows.followed(base, before)
        if len(followed.expectations) == len(conditions):
            return followed
        whole = rows.whole(replace(base, expectations=known), conditions)
        return replace(whole, expectations={**whole.expectations, **followed.expectations})

    def _conditions_of(self, name: str, expect: Mapping[str, str], schema: pa.Schema) -> Conditions:
        """The conditions over a view, made again when they or its columns have changed."""
        wanted, columns = dict(expect), schema.to_string()
        made = self._conditions.get(name)
        if made is None or made[:2] != (wanted, columns):
            made = self._conditions[name] = wanted, columns, self._make(name, schema, wanted)
        return made[2]


class _ViewRows:
    """The rows of a view at one version."""

    def __init__(self, rows: VersionRows, conditions: Conditions, key: Sequence[str]) -> None:
        self._rows, self._conditions, self._origin = rows, conditions, rows.origin
        names, self._hidden = rows.columns.names, [] if rows.origin is None else [rows.origin]
        self._columns = [*names, *self._hidden]
        self._ident = self._hidden if rows.origin == KEY_COLUMN else [*(key or names), *self._hidden]

    def followed(self, before: ViewExpectations, earlier: VersionRows | None) -> ViewExpectations:
        """Those of the expectations that the changed rows tell, without the others: all of them, or none."""
        if earlier is not None and before.expectations:
            try:
                return self._changed(before, earlier)
            except EpochExpiredError:
                pass  # all rows are counted instead
        return replace(before, expectations={})

    def whole(self, before: ViewExpectations, conditions: Mapping[str, str]) -> ViewExpectations:
        """Counts all rows.  A release may have accepted some of them: none."""
        counts, files, errors = Counter[str](), Counter[str](), dict[str, str]()
        waiting = {name: Counter[str]() for name in conditions}
        for rows in self._rows.parts(self._columns):
            found = _Violations(self._conditions, rows)
            counts.update({name: found.count(name) for name in found.masks})
            for name in found.masks:
                waiting[name].update(_origins(found.of(name, self._hidden), self._origin, MOST_NAMED))
            files.update(found.files())
            errors |= found.errors
        expectations = {}
        for name, condition in conditions.items():
            known = before.expectations.get(name, Expectation(condition))
            expectations[name] = replace(
                known,
                rows=counts[name],
                accepted=0,
                came=known.came + max(0, counts[name] - known.rows),
                error=errors.get(name),
                waiting=dict(waiting[name].most_common(MOST_NAMED)),
            )
        return replace(before, expectations=expectations, files=dict(files))

    def _changed(self, before: ViewExpectations, earlier: VersionRows) -> ViewExpectations:
        """Counts the rows that this version does not share with an earlier version."""
        both = self._rows.changed_since(earlier, self._columns)
        gone, new = (_Violations(self._conditions, rows) for rows in both)
        errors = gone.errors | new.errors
        expectations = {}
        for name, known in before.expectations.items():
            if name in errors:
                expectations[name] = replace(known, error=errors[name])
                continue
            left, begun = surplus(gone.of(name, self._ident), new.of(name, self._ident))
            expectations[name] = known.followed(
                left.num_rows,
                begun.num_rows,
                _origins(left, self._origin) if known.waiting else Counter(),
                _origins(begun, self._origin, MOST_NAMED),
            )
        files = Counter(before.files)
        files.update(new.files())
        files.subtract(gone.files())
        return replace(before, expectations=expectations, files={file: n for file, n in files.items() if n > 0})


class _Violations:
    """The rows of a table that violate expectations."""

    def __init__(self, conditions: Conditions, rows: pa.Table) -> None:
        self._rows = rows
        self.masks, self.errors = conditions.unfulfilled(rows)

    def count(self, name: str) -> int:
        """The number of rows that violate one."""
        return pc.sum(self.masks[name], min_count=0).as_py() or 0

    def of(self, name: str, columns: Sequence[str]) -> pa.Table:
        """The rows that violate one."""
        return self._rows.select(columns).filter(self.masks[name])

    def files(self) -> Counter[str]:
        """The fingerprints of the files of rows that violate any; empty if the rows do not name their file."""
        if FILE_FIELD.name not in self._rows.column_names or not self.masks:
            return Counter()
        return _origins(self._of_any(), FILE_FIELD.name)

    def _of_any(self) -> pa.Table:
        masks: Iterable[pa.Array] = iter(self.masks.values())
        found = next(iter(masks))
        for each in masks:
            found = pc.or_(found, each)
        return self._rows.filter(found)


def _origins(rows: pa.Table, column: str | None, most: int | None = None) -> Counter[str]:
    """Where rows are from, as it is recorded → their number.

    Args:
        rows: the rows; those that do not tell are left out.
        column: see `VersionRows.origin`.
        most: the number of the most frequent ones that are wanted; None for all.
    """
    if column is None or not rows.num_rows:
        return Counter()
    counts = pa.Table.from_struct_array(rows[column].drop_null().value_counts())
    if most is not None:
        counts = counts.take(pc.select_k_unstable(counts, most, [("counts", "descending")]))
    return Counter({_recorded(each["values"]): each["counts"] for each in counts.to_pylist()})


def _recorded(origin: bytes | str) -> str:
    """The fingerprint of a file, or of the text of a group."""
    return (origin if isinstance(origin, bytes) else text_fingerprint(origin)).hex()


def _texts(declared: Declared) -> dict[str, str]:
    """Name → condition, as they are recorded."""
    return {**declared.row_conditions, **{name: each.text for name, each in declared.view_conditions.items()}}


def _came_in(epoch: int, before: ViewExpectations, after: ViewExpectations) -> int | None:
    """The epoch if rows have begun to violate in it."""
    earlier = {name: each.came for name, each in before.expectations.items()}
    return epoch if any(each.came > earlier.get(name, 0) for name, each in after.expectations.items()) else None
