"""Which quarantined files may be read again, and how they go back into the queue of a root that nobody runs on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from actors.file_progress import FileProgress
from actors.messages import FileVersion, RetriedFile
from slackwater.file_table import source_url
from state.catalog import Catalog
from state.clock import Clock
from state.delta import DeltaBuilder
from state.epoch import next_epoch
from state.errors import NotFoundError
from state.location import Location
from state.records import EpochCounts, EpochSeconds
from state.store import StateStore


def quarantined_files(store: StateStore, source: str | None = None, path: str | None = None) -> list[RetriedFile]:
    """The quarantined files that may be read again: the last version of each path, unless another one was read.

    Args:
        store: a handle on the store.
        source: only this source's.
        path: only this one: its whole URL, an absolute path, or its path below a source.

    Raises:
        NotFoundError: there is no such source, or no such quarantined file.
    """
    sources = Catalog.of(store.scan("catalog")).sources
    if source is not None and source not in sources:
        raise NotFoundError(f"there is no source {source!r}; the sources are: {', '.join(sources) or 'none'}")
    ledger, queue = store.scan("ledger"), store.scan("queue")
    wanted = pc.field("status") == "quarantined"
    if source is not None:
        wanted &= pc.field("source") == source
    quarantined = ledger.filter(wanted).sort_by("listed_epoch").to_pylist()
    if path is not None:
        urls = {name: source_url(each.definition) for name, each in sources.items()}
        quarantined = [row for row in quarantined if _is_named(row, path, urls)]
        if not quarantined:
            raise NotFoundError(
                f"no file {path} is quarantined{f' in source {source}' if source else ''}; "
                "`files --status quarantined` shows those that are"
            )
    latest = {(row["source"], row["path"]): row for row in quarantined}
    same_path = pc.field("path").isin(pa.array([path for _, path in latest], pa.string()))
    read = ledger.filter(same_path & (pc.field("rows_read") > 0) & (pc.field("status") != "quarantined"))
    taken = _paths(read) | _paths(queue.filter(same_path))
    return [_retried(row) for key, row in latest.items() if key not in taken]


def requeue(store: StateStore, clock: Clock, source: str | None = None, path: str | None = None) -> int:
    """Puts quarantined files back into the queue, in an epoch of its own.  The next run reads them.

    Args:
        store: the owner's handle.
        clock: makes the epoch.
        source: see `quarantined_files`.
        path: likewise.

    Returns:
        How many files.

    Raises:
        NotFoundError: as `quarantined_files`.
        FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
    """
    files = [FileProgress.of_retried(each) for each in quarantined_files(store, source, path)]
    delta = DeltaBuilder()
    for each in files:
        delta.delete("ledger", each.state_key, each.vnode)
        delta.put("queue", each.state_key, each.vnode, **each.queue_row())
    if files:
        store.commit(
            epoch=next_epoch(clock, store.head.epoch),
            delta=delta.build(),
            views=store.head.views,
            counts=EpochCounts(),
            seconds=EpochSeconds(),
        )
    return len(files)


def _is_named(row: Mapping[str, Any], path: str, urls: Mapping[str, str]) -> bool:
    if "://" in path or path.startswith("/"):
        return f"{urls.get(row['source'])}/{row['path']}" == Location(path).url
    return bool(row["path"] == path)


def _paths(files: pa.Table) -> set[tuple[str, str]]:
    return set(zip(files["source"].to_pylist(), files["path"].to_pylist(), strict=True))


def _retried(row: Mapping[str, Any]) -> RetriedFile:
    return RetriedFile(
        FileVersion(**{name: row[name] for name in FileVersion.__dataclass_fields__}),
        **{name: row[name] for name in RetriedFile.__dataclass_fields__ if name != "file"},
    )
