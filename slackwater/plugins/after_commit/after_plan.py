"""The files that a run would delete, move or tag now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from slackwater.extensions.file_action import AfterPlan
from slackwater.extensions.planned_files import NO_FILES, Files
from slackwater.extensions.run_views import Needs
from slackwater.plugins.after_commit.commit_times import known_commit_times
from slackwater.plugins.after_commit.declaration import DeclaredAfter
from slackwater.plugins.after_commit.due_files import due_files
from slackwater.plugins.after_commit.reach import Moment, reach
from spark_bridge.plans.view_definition import ViewDefinition, sources_read
from state.clock import Clock
from state.lance.handled_files import HandledFiles
from state.location import Location
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.records import CatalogView

_SHOWN = 5
_TRIED = ("failed", "waits")


def plan_after(
    declared: DeclaredAfter,
    state: StateStore | None,
    root: Location,
    views: Sequence[ViewDefinition],
    published: Collection[str],
    clock: Clock,
) -> AfterPlan:
    """The plan of one source.

    Args:
        declared: the source, and the action on its files.
        state: a handle on the store; None if the root has none.
        published: the views that tables follow.
        clock: gives the time.

    Raises:
        StorageError: the root cannot be read.
    """
    source, action = declared.source, str(declared.action)
    plan = AfterPlan(
        source.name,
        action,
        tables=tuple(sorted(published)),
        keeps_rows=source.materialize or not declared.takes_away,
    )
    if state is None:
        return plan
    record = HandledFiles(root)
    done = record.done_until(source.name, action)
    handled = {key for key, outcome in record.since(source.name, action, done).items() if outcome not in _TRIED}
    catalog, now, keep_s = Catalog.of(state.scan("catalog")), clock.now(), declared.action.keep_s
    needs = _needs(views, source.name, catalog)
    commits = known_commit_times(record, state.epoch_times())
    moment = Moment(state, catalog, root, needs, {}, now, commits, record.clock_change())
    reached = reach(moment, source.name, keep_s=keep_s, is_stored=source.materialize)
    due, later, first = NO_FILES, NO_FILES, list[str]()
    for files in due_files(state, source.name, after=done, until=state.head.epoch):
        for each in files:
            if (each.file.path, each.file.version) in handled:
                continue
            if each.epoch <= reached.epoch and each.is_old_enough(keep_s, now):
                due += Files(1, each.file.size)
                first += [each.file.path] if len(first) < _SHOWN else []
            else:
                later += Files(1, each.file.size)
    return replace(plan, due=due, first=tuple(first), later=later, waits_for=reached.waits_for)


def _needs(views: Sequence[ViewDefinition], source: str, catalog: Catalog) -> Needs:
    """The needs of the views before Spark has analysed them: a view whose text has changed has no stored identity."""
    parts = {part.name: part for view in views for part in view.parts}
    identities = {
        name: stored.identity if _has_text(part, stored) else ""
        for name, part in parts.items()
        if (stored := catalog.views.get(name)) is not None
    }
    # A view that the root lacks needs the files with any plan.
    identities |= dict.fromkeys(parts.keys() - identities.keys(), "")
    return Needs(is_analysed=True, reads=sources_read(parts, [source]), identities=identities)


def _has_text(view: ViewDefinition, stored: CatalogView) -> bool:
    if view.function is not None:
        from spark_bridge.plans.function_source import definition_text  # late: it loads Spark

        text = definition_text(view.function)
    else:
        text = view.query or ""
    wanted, found = " ".join(text.split()), " ".join(stored.definition.split())
    return found == wanted or found.startswith(f"{wanted} -- ")
