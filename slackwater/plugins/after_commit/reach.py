"""Reach: the last epoch of a source whose files may be touched, and the condition that keeps files of later epochs.

docs/howto/after-the-commit.md describes the conditions: views, publications, and time.  Two conditions are about single
files, and are checked by `FileWork`: the age of a file, and its rows in the stored rows of the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from slackwater.extensions.run_views import Needs, PublishedView
from slackwater.plugins.after_commit.commit_times import committed_until
from slackwater.reading.tables.expectation_table import published_epoch
from state.lance.handled_files import ClockChange, CommitTime
from state.location import Location
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.records import Head
from state.tables.stored_rows import declared_name, next_name
from state.upkeep.branches import root_above


@dataclass(frozen=True)
class Reach:
    """The last epoch whose files may be touched.

    Args:
        epoch: the epoch; 0 for none.
        waits_for: the condition that a later epoch does not meet; empty if only the stated time has to pass.
        needed_by: the view that lacks the files, which it can get from the stored rows of the source; empty without
            one.  Then only a file whose rows are all stored may be touched.
    """

    epoch: int
    waits_for: str = ""
    needed_by: str = ""


@dataclass(frozen=True)
class Moment:
    """The facts of one look, which are the same for all sources.

    Args:
        state: a handle on the store.
        catalog: the catalog that this handle sees.
        root: the root of the store.
        needs: of the run; read before the handle was opened.
        published: table → the last epoch that it has; None for a table without an epoch.
        commits: the known times of commits, by epoch; see `CommitTimes`.
        clock_change: the last change of the clock; None without one.
    """

    state: StateStore
    catalog: Catalog
    root: Location
    needs: Needs
    published: Mapping[PublishedView, int | None]
    now: datetime
    commits: Sequence[CommitTime]
    clock_change: ClockChange | None = None


def reach(moment: Moment, source: str, *, keep_s: float, is_stored: bool) -> Reach:
    """The last epoch of a source whose files may be touched.

    Args:
        moment: see `Moment`.
        source: the name of the source.
        keep_s: seconds since the commit.
        is_stored: whether the root keeps the rows of the source.
    """
    if root_above(moment.root) is not None:
        return Reach(0, "a branch leaves the files of its root alone")
    lacking = lacking_view(moment.catalog, moment.state.head, moment.needs, source)
    if lacking and not is_stored:
        return Reach(0, lacking)
    kept_since = moment.now - timedelta(seconds=keep_s)
    if moment.clock_change is not None and moment.clock_change.at > kept_since:
        return Reach(0, "the clock of this machine was set", lacking)
    kept = committed_until(moment.commits, kept_since, moment.now, moment.clock_change)
    limits = {"": kept, "an expectation holds the last epochs back": published_epoch(moment.state, moment.catalog)}
    for each in _tables(moment, source):
        epoch = moment.published.get(each)
        reason = f"the publication {each.table} of view {each.view} lacks the last epochs"
        limits[reason] = epoch or 0
    waits_for, epoch = min(limits.items(), key=lambda limit: limit[1])
    latest = moment.state.head.epoch
    return Reach(min(epoch, latest), waits_for if epoch < min(kept, latest) else "", lacking)


def lacking_view(catalog: Catalog, head: Head, needs: Needs, source: str) -> str:
    """The view that needs the files of a source, and why; empty if every declared view has all of their rows.

    Args:
        catalog: the committed catalog.
        head: the committed head.
        source: the name of the source.
    """
    if not needs.is_analysed:
        return "the views of this run are not analysed yet"
    for name, sources in needs.changing.items():
        if source in sources:
            return f"view {name} needs the files: it is being added, replaced or rebuilt"
    for name in needs.reads:
        if source in _sources(needs, catalog, name) and (why := _lack(name, catalog, head, needs)):
            return f"view {name} needs the files: {why}"
    for name, view in catalog.views.items():
        # An undeclared view keeps the files, too, until it is dropped: its owner has not seen the error yet.
        if source in view.sources and (view.error is not None or _is_built(name, head)):
            return f"view {declared_name(name)} needs the files: it has failed, or is being built"
    return ""


def _sources(needs: Needs, catalog: Catalog, name: str) -> frozenset[str]:
    """The sources that a declared view may read, by its text and by its stored plan."""
    stored = catalog.views.get(name)
    return needs.reads[name] | (frozenset() if stored is None else frozenset(stored.sources))


def _lack(name: str, catalog: Catalog, head: Head, needs: Needs) -> str:
    """The reason why a declared view lacks rows; empty if the committed catalog has it, with all of its rows."""
    stored = catalog.views.get(name)
    if name not in needs.identities:
        return "it waits for the schema of a source, or cannot be analysed"
    if stored is None:
        return "no epoch has it yet"
    if stored.identity != needs.identities[name]:
        return "it is stored with another definition"
    if stored.version_name in needs.rebuilt:
        return "it is being rebuilt"
    parts = [view for each, view in catalog.views.items() if declared_name(each) == name]
    if any(view.error is not None for view in parts):
        return "it has failed"
    if any(view.stopped_epoch is not None for view in parts):
        return "it is stale"
    if next_name(name) in catalog.views or any(_is_built(each, head) for each in head.views if _is_of(each, name)):
        return "it is being built"
    return ""


def _is_of(recorded: str, view: str) -> bool:
    return declared_name(recorded) == view


def _is_built(recorded: str, head: Head) -> bool:
    version = head.views.get(recorded)
    return version is not None and version.pinned_epoch is not None


def _tables(moment: Moment, source: str) -> list[PublishedView]:
    """The tables that follow a view of a source, also one that reads it by way of other views."""
    reading = {declared_name(each.name) for each in moment.catalog.views.values() if source in each.sources}
    reading |= {name for name, sources in moment.needs.reads.items() if source in sources}
    tables = {*moment.needs.published, *moment.published}
    return sorted((each for each in tables if each.view in reading), key=lambda each: (each.view, each.table))
