"""Retry of quarantined files and failed views, also on a root without a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from actors.fetching.file_progress import FileProgress
from actors.files import FileVersion, RetriedFile
from slackwater.commands.named_files import NamedFiles
from slackwater.reading.tables.file_table import source_url
from spark_bridge.plans.view_definition import BY_WATERMARK, ON_CLOSE
from state.clock import Clock
from state.epoch import next_epoch
from state.errors import CommandRefusedError, NotFoundError, ViewNotFoundError
from state.store.store import StateStore
from state.tables.catalog import Catalog, put_view
from state.tables.delta import DeltaBuilder
from state.tables.keys import encode_key
from state.tables.records import CatalogView, EpochCounts, EpochSeconds
from state.tables.row_selection import Clue
from state.tables.stored_rows import declared_name, is_view
from state.tables.tables import REMOVED_STATUSES

_VERSION = ("source", "path", "status", "rows_read", "listed_epoch")


def quarantined_files(store: StateStore, source: str | None = None, file: str | None = None) -> list[RetriedFile]:
    """The quarantined files that may be read again: the last version of each path, unless the views have another one.

    Files with single bad records are not retried: the views hold the rows around the records.  Neither is a version
    whose object has changed since: it can no longer be read.

    Args:
        store: a handle on the store.
        source: only files of this source.
        file: only files with this name, see `NamedFiles`.

    Raises:
        NotFoundError: there is no such source, or no such quarantined file.
        CommandRefusedError: each named file has changed since.
    """
    sources = Catalog.of(store.scan("catalog")).sources
    if source is not None and source not in sources:
        raise NotFoundError(f"there is no source {source!r}; the sources are: {', '.join(sources) or 'none'}")
    found = store.scan("ledger", where=[Clue("status", equals="quarantined")]).sort_by("listed_epoch").to_pylist()
    quarantined = [row for row in found if source in (None, row["source"])]
    if file is not None:
        urls = {name: source_url(each.definition) for name, each in sources.items()}
        named = NamedFiles(file, urls)
        quarantined = [row for row in quarantined if named.has(row["source"], row["path"])]
        if not quarantined:
            raise NotFoundError(
                f"no file {file} is quarantined{f' in source {source}' if source else ''}; `files --status "
                "quarantined` shows those that are; single bad records, which `quarantine` shows, are not retried"
            )
        if all(row["changed_epoch"] is not None for row in quarantined):
            raise CommandRefusedError(
                f"{file} has changed since it was quarantined, and what it was can no longer be read; `reingest` reads "
                "what it is now"
            )
    latest = {(row["source"], row["path"]): row for row in quarantined}
    prefixes = [encode_key(*key) for key in latest]
    taken = _paths(store.scan("queue", prefixes=prefixes))
    for row in store.scan("ledger", prefixes=prefixes, fields=_VERSION).to_pylist():
        path = row["source"], row["path"]
        is_in_views = row["rows_read"] and row["status"] not in ("quarantined", *REMOVED_STATUSES)
        if is_in_views or row["listed_epoch"] > latest[path]["listed_epoch"]:
            taken.add(path)
    return [_retried(row) for path, row in latest.items() if path not in taken and row["changed_epoch"] is None]


def requeue(store: StateStore, clock: Clock, source: str | None = None, file: str | None = None) -> int:
    """Puts quarantined files back into the queue, in an epoch of their own.  The next run reads them.

    Args:
        clock: makes the epoch.
        source: see `quarantined_files`.
        file: see `quarantined_files`.

    Returns:
        The number of files.

    Raises:
        NotFoundError, CommandRefusedError: as `quarantined_files`.
        FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
    """
    files = [FileProgress.of_retried(each) for each in quarantined_files(store, source, file)]
    delta = DeltaBuilder()
    for each in files:
        delta.delete("ledger", each.state_key, each.vnode)
        delta.put("queue", each.state_key, each.vnode, **each.queue_row())
    if files:
        _commit(store, clock, delta)
    return len(files)


def forgive_view(store: StateStore, clock: Clock, name: str) -> None:
    """Takes the error of a failed view out of the catalog, in an epoch of its own.  The next run rebuilds the view.

    A view with late rows stops at this epoch, and so do the views that read it: they are rebuilt as well.

    Args:
        clock: makes the epoch.

    Raises:
        ViewNotFoundError: there is no such view.
        CommandRefusedError: the view has not failed, and knows no late rows.
        FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
    """
    catalog = Catalog.of(store.scan("catalog"))
    views = catalog.views
    if name not in views or not is_view(name):
        names = ", ".join(filter(is_view, views)) or "none"
        raise ViewNotFoundError(f"there is no view {name!r} to retry; the views are: {names}")
    delta = DeltaBuilder()
    if views[name].error is not None:
        put_view(delta, replace(views[name], error=None))
    elif has_late_rows(views[name]):
        rebuilt = catalog.with_readers([name])
        for each in views.values():
            if declared_name(each.name) in rebuilt and each.stopped_epoch is None:
                put_view(delta, replace(each, stopped_epoch=store.head.epoch))
    else:
        raise CommandRefusedError(has_not_failed(name))
    _commit(store, clock, delta)


def has_late_rows(view: CatalogView) -> bool:
    """True if rows can be late for a view: a rebuild accepts them."""
    return view.definition.endswith((ON_CLOSE, BY_WATERMARK))


def has_not_failed(view: str) -> str:
    """The message for a view that cannot be retried."""
    return f"view {view!r} has not failed: `status` shows the views that have"


def _commit(store: StateStore, clock: Clock, delta: DeltaBuilder) -> None:
    store.commit(
        epoch=next_epoch(clock, store.head.epoch, store.head.term),
        delta=delta.build(),
        views=store.head.views,
        counts=EpochCounts(),
        seconds=EpochSeconds(),
    )


def _paths(files: pa.Table) -> set[tuple[str, str]]:
    return set(zip(files["source"].to_pylist(), files["path"].to_pylist(), strict=True))


def _retried(row: Mapping[str, Any]) -> RetriedFile:
    return RetriedFile(
        FileVersion(**{name: row[name] for name in FileVersion.__dataclass_fields__}),
        **{name: row[name] for name in RetriedFile.__dataclass_fields__ if name != "file"},
    )
