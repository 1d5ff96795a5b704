"""History of one object, and the reason why its rows are in the views or not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias

import pyarrow.compute as pc

from actors.objects.object_store import ObjectStore
from actors.sources.source import recorded_filter
from slackwater.reading.tables.expectation_table import violation_lines
from slackwater.reading.tables.file_table import VERSION_COLUMNS, FileStatus, read_files, source_url
from slackwater.reading.tables.handled_table import handled_lines, waiting_lines
from slackwater.reading.tables.run_files import RunFiles
from slackwater.reading.tables.source_table import SourceDiscovery
from slackwater.reading.tables.view_table import reflected_epoch
from slackwater.status.text import counted
from state.epoch import epoch_time
from state.errors import SlackwaterError
from state.location import Location
from state.ownership.owner import Owner
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.keys import encode_key
from state.tables.records import CatalogSource
from state.tables.tables import REMOVED_STATUSES
from state.upkeep.quarantine import bad_records

FileHistoryStatus: TypeAlias = (
    FileStatus
    | Literal[
        "outside",
        "directory",
        "hidden",
        "pattern",
        "too_old",
        "skipped",
        "in_flight",
        "not_listed",
        "absent",
        "unknown",
    ]
)

_BACK = "It is back, and is read again: its rows are added to the views when all of it is read."
_FIND = "`slackwater files` and the search of `slackwater ui` show its files"
_IN_PLACE = "It is read again, and its rows of now come in place of these when that is done."
_OF_A_LISTED_NAME = ("skipped", "too_old", "absent", "unknown")
HISTORY_EPOCHS = ("listed_epoch", "first_epoch", "done_epoch", "changed_epoch", "deleted_epoch", "removed_epoch")


@dataclass(frozen=True)
class FileHistory:
    """The history of one object.

    Args:
        path: the whole URL of the object; the given text if no source has it.
        source: the name of its source, or None.
        status: as in the table of files; or `outside` (below the URL of no source), `directory`, `hidden`, `pattern`
            (left out by the pattern of the source), `too_old` (written before `modified_after`), `skipped` (by every
            listing: a link, or a name that cannot be read), `in_flight` (the run has listed it, or others of its
            source, and has not committed them yet), `not_listed` (it exists, and no listing has found it yet),
            `absent` (it does not exist), or `unknown` (it was not listed, and its existence cannot be checked).
        text: the history in words, one sentence a line.
        epochs: the known ones of `listed_epoch`, `first_epoch`, `done_epoch`, `changed_epoch`, `deleted_epoch`,
            `removed_epoch`.
        rows_bad: the number of quarantined records of its latest version.
        first_bad: the first of them with its reason, in words; empty without one, or if it was cleared.
        lacking_views: the failed views over its source that lack rows of it.
    """

    path: str
    source: str | None
    status: FileHistoryStatus
    text: str
    epochs: Mapping[str, int] = field(default_factory=dict)
    rows_bad: int = 0
    first_bad: str = ""
    lacking_views: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Candidate:
    """The object as one source names it."""

    source: CatalogSource
    relative: str

    @property
    def url(self) -> str:
        return f"{source_url(self.source.definition)}/{self.relative}"


def file_history(
    path: str, root: Location, store: StateStore, catalog: Catalog, owner: Owner | None, now: datetime
) -> FileHistory:
    """The history of one object.

    Args:
        path: the whole URL of the object, or its path below a source.
        root: the root; its storage options count for sources of the same scheme.
        store: a handle on the store.
        catalog: the sources and the views.
        owner: the process that runs on the root or ran last; it reports the progress of discovery.
        now: the time of the wall clock.
    """
    candidates = _candidates(path, catalog)
    if above := _directory(path, catalog):
        name, url = above
        return FileHistory(
            url, name, "directory", f"{url} is a directory of source {name}: name a file in it; {_FIND}."
        )
    if not candidates and not catalog.sources and owner is not None and not owner.is_gone():
        return _of_first_epoch(path, RunFiles.read(store, owner))
    if not candidates:
        sources = ", ".join(f"{name} ({source_url(each.definition)})" for name, each in catalog.sources.items())
        return FileHistory(
            path, None, "outside", f"{path} is under no source's URL; the sources are: {sources or 'none yet'}."
        )
    for candidate in candidates:
        start = encode_key(candidate.source.name, candidate.relative)
        versions = (
            read_files(store, None, columns=VERSION_COLUMNS, start=start, end=start + b"\xff")
            .sort_by("listed_epoch")
            .to_pylist()
        )
        if versions:
            history = _of_listed(candidate, versions, store, catalog, is_paused=_is_paused(owner))
            violations = violation_lines(catalog, candidate.source.name, candidate.relative)
            handled = handled_lines(root, candidate.source.name, candidate.relative, now)
            if not handled and versions[-1]["status"] == "done":
                handled = waiting_lines(owner, candidate.source.name)
            return replace(history, text="\n".join([history.text, *violations, *handled]))
    histories = [
        _of_skipped(candidate, store) or _of_unlisted(candidate, root, store, owner, now) for candidate in candidates
    ]
    # A source whose pattern has the name knows more of it than a source that never lists it.
    preferred = ("in_flight", "not_listed"), _OF_A_LISTED_NAME
    return next(
        (history for statuses in preferred for history in histories if history.status in statuses), histories[0]
    )


def _candidates(path: str, catalog: Catalog) -> list[_Candidate]:
    """The sources that the path may belong to, by the length of their URL, longest first."""
    url = path if "://" in path else Location(path).url
    sources = sorted(catalog.sources.values(), key=lambda each: -len(source_url(each.definition)))
    whole = [
        _Candidate(each, url[len(source_url(each.definition)) + 1 :])
        for each in sources
        if url.startswith(source_url(each.definition) + "/")
    ]
    if whole or "://" in path or path.startswith("/"):
        return whole
    return [_Candidate(each, path) for each in sources]


def _directory(path: str, catalog: Catalog) -> tuple[str, str] | None:
    """Source and URL of a path that is the place of a source, or that ends as a directory does; else None."""
    url = (path if "://" in path else Location(path).url).rstrip("/")
    for name, source in catalog.sources.items():
        own = source_url(source.definition).rstrip("/")
        is_below = url.startswith(f"{own}/")
        location = Location(own)
        is_there = is_below and location.is_local and Location(url).path.is_dir()
        if url == own or is_there or (is_below and path.endswith("/")):
            return name, url
    return None


def _of_listed(
    candidate: _Candidate, versions: list[dict[str, Any]], store: StateStore, catalog: Catalog, *, is_paused: bool
) -> FileHistory:
    latest, is_read_again, at = versions[-1], _is_read_again(candidate, store), _Times(store)
    bad = [_first_bad(candidate, version, store) for version in versions]
    lines = [
        " ".join(
            filter(
                None,
                (
                    _version_line(candidate.url, version, at),
                    first and f"The first bad record, counted from 0, is {first}.",
                ),
            )
        )
        for version, first in zip(versions, bad, strict=True)
    ]
    if is_read_again:
        finished = [version for version in versions if version["status"] != "waiting"]
        lines.append(_BACK if finished and _took_its_rows_along(finished[-1]) else _IN_PLACE)
    elif _took_its_rows_along(latest):
        lines.append("When it is back, it is read again.")
    if len(versions) > 1:
        lines.append(f"{len(versions)} versions of it were listed; the last line is about the latest.")
    if is_paused and latest["status"] in ("waiting", "reading"):
        lines.append("The run is paused, and reads it on after `slackwater resume`.")
    lines += _unmatched(candidate, catalog)
    lacking = _lacking(candidate.source.name, versions, store, catalog, at)
    lines += lacking.values()
    epochs = {name: latest[name] for name in HISTORY_EPOCHS if latest[name] is not None}
    text, rows_bad = "\n".join(lines), latest["rows_bad"] or 0
    return FileHistory(
        candidate.url, candidate.source.name, latest["status"], text, epochs, rows_bad, bad[-1], tuple(lacking)
    )


def _is_paused(owner: Owner | None) -> bool:
    return owner is not None and owner.phase == "paused" and not owner.is_gone()


def _unmatched(candidate: _Candidate, catalog: Catalog) -> list[str]:
    """The columns that files of its source have alone, or lack, a sentence each: the first file of each is known."""
    name = candidate.source.name
    left_out: list[str] = []
    missing: list[str] = []
    renamed: list[str] = []
    for each in catalog.unmatched:
        if each.source == name:
            first = "first in it" if each.path == candidate.relative else f"first in {each.path}"
            columns = missing if each.is_missing else left_out if each.was is None else renamed
            columns.append(
                f"{each.column} ({first})" if each.was is None else f"{each.was!r} as {each.column} ({first})"
            )
    said = {
        f"Source {name} leaves out columns that its schema does not have": left_out,
        f"Files of source {name} lack columns, which are null in their rows": missing,
        f"Files of source {name} have columns with names that it cannot have": renamed,
    }
    return [f"{sentence}: {', '.join(names)}." for sentence, names in said.items() if names]


def _took_its_rows_along(version: Mapping[str, Any]) -> bool:
    """True if its rows left the views with the object, as in a source with `on_change="replace"`."""
    return bool(version["status"] == "forgotten" and version["deleted_epoch"] == version["removed_epoch"])


def _is_read_again(candidate: _Candidate, store: StateStore) -> bool:
    start = encode_key(candidate.source.name, candidate.relative)
    return any(row["replaces"] for row in store.scan("queue", start=start, end=start + b"\xff").to_pylist())


def _first_bad(candidate: _Candidate, version: Mapping[str, Any], store: StateStore) -> str:
    """The first bad record of a file version and its reason; empty without one, or if it was cleared."""
    if not version["rows_bad"]:
        return ""
    records = bad_records(store, candidate.source.name, candidate.relative)
    mine = pc.and_(pc.equal(records["version"], version["version"]), pc.is_valid(records["reason"]))
    for first in records.filter(mine).sort_by("row").slice(0, 1).to_pylist():
        return f"row {first['row']}: {first['reason']}"
    return ""


def _lacking(
    source: str, versions: Sequence[Mapping[str, Any]], store: StateStore, catalog: Catalog, at: _Times
) -> dict[str, str]:
    """The failed views over a source that lack rows of a file, each with the reason, in a sentence."""
    ingested = [each for each in versions if each["rows_read"] and each["status"] not in REMOVED_STATUSES]
    if not ingested:
        return {}
    first = min(_first_known(store.head.epoch, each["first_epoch"], each["done_epoch"]) for each in ingested)
    last = max(_first_known(store.head.epoch, each["done_epoch"]) for each in ingested)
    lacking = {}
    for name, version in store.head.views.items():
        view = catalog.views.get(name)
        if view is None or view.error is None or source not in view.sources:
            continue
        stale_epoch = reflected_epoch(view, version, store.head.epoch)
        if stale_epoch is None:
            text = f"View {name} does not have its rows: it failed in its first epoch, {at(view.created_epoch)}"
        elif stale_epoch < first:
            text = f"View {name} does not have its rows: it failed, and is stale since {at(stale_epoch)}"
        elif stale_epoch < last:
            text = f"View {name} has its rows only up to {at(stale_epoch)}; it is stale since it failed"
        else:
            continue
        lacking[name] = f"{text}. The error: {' '.join(view.error.split())}"
    return lacking


def _first_known(otherwise: int, *epochs: int | None) -> int:
    return next((each for each in epochs if each is not None), otherwise)


def _version_line(url: str, version: Mapping[str, Any], at: _Times) -> str:
    listed = at(version["listed_epoch"])
    status, rows = version["status"], version["rows_read"] or 0
    bad = f"{version['rows_bad']:,} of them" if version["rows_bad"] else ""
    kept = f"its first {rows:,} rows are in the views" if rows else "none of its rows is in the views"
    kept += f", except {bad}, which are quarantined" if bad else ""
    error = version["error"] or "no reason was recorded"
    if status == "waiting":
        text = f"{url} has been waiting to be read since {listed}."
        return text if not version["error"] else f"{text} The last of {version['attempts']} attempts failed: {error}."
    if status == "reading":
        return f"{url} is being read: {kept}. It was listed at {listed}."
    if status in REMOVED_STATUSES:
        was = f"{rows:,} rows of it were in the views" if rows else "none of its rows was in the views"
        if _took_its_rows_along(version):
            left = ", and its rows left the views with it" if rows else ""
            return f"{url} was deleted, seen at {at(version['deleted_epoch'])}{left}; {was}."
        instead = " by those of a later reading" if status == "replaced" else " and is not read again by itself"
        deleted = (
            "" if version["deleted_epoch"] is None else f" It was deleted, seen at {at(version['deleted_epoch'])}."
        )
        return f"{url} was {status} at {at(version['removed_epoch'])}{instead}; {was}.{deleted}"
    if status == "done":
        text = f"{url} was read to its end at {at(version['done_epoch'])}: {counted(rows, 'row')}"
        text += f", {bad} quarantined." if bad else "."
        if version["changed_epoch"] is not None:
            text += f" It was changed later, seen at {at(version['changed_epoch'])}; its rows are those of before."
        if version["deleted_epoch"] is not None:
            text += f" It was deleted, seen at {at(version['deleted_epoch'])}; its rows stay in the views."
        return text
    if status == "quarantined":
        return f"{url} was quarantined at {at(version['done_epoch'])}: {error}; {kept}."
    deleted = version["deleted_epoch"] if version["deleted_epoch"] is not None else version["done_epoch"]
    return f"{url} was listed at {listed} and had vanished at {at(deleted)}, before all of it was read; {kept}."


def _of_skipped(candidate: _Candidate, store: StateStore) -> FileHistory | None:
    """The history of a name that listings skip; None if they do not."""
    reasons = bad_records(store, candidate.source.name, candidate.url)["reason"].to_pylist()
    if not reasons:
        return None
    text = f"{candidate.url} is skipped by listings: {reasons[0]}."
    return FileHistory(candidate.url, candidate.source.name, "skipped", text)


def _of_first_epoch(path: str, files: RunFiles) -> FileHistory:
    """The history of any path before the first commit of the sources."""
    if files.status is None:
        text = "The run on this root is starting, and has not reported its sources yet; ask again in a moment."
        return FileHistory(path, None, "unknown", text)
    parts = [f"{counted(number, 'file')} of {name}" for name, number in files.in_flight.items() if number]
    text = (
        f"No epoch is committed yet. The run has the sources {', '.join(files.status.sources)}, and in flight are: "
        f"{', '.join(parts) or 'no files'}. After the first commit, this has the history of each file."
    )
    return FileHistory(path, None, "in_flight" if parts else "unknown", text)


def _of_unlisted(
    candidate: _Candidate, root: Location, store: StateStore, owner: Owner | None, now: datetime
) -> FileHistory:
    url, name = candidate.url, candidate.source.name
    reason = recorded_filter(candidate.source.definition).reason(candidate.relative)
    if reason == "hidden":
        text = (
            f"{url} is hidden: names and directories that start with `_` or `.`, and unfinished files such as `*.tmp`, "
            "are skipped unless the pattern names them."
        )
        return FileHistory(url, name, reason, text)
    if reason is not None:
        pattern = json.loads(candidate.source.definition)["pattern"]
        return FileHistory(url, name, reason, f"{url} does not match the pattern {pattern!r} of source {name}.")
    discovery = SourceDiscovery.read(name, store, owner)
    how, never, not_yet = discovery.text(now), "was never listed", "no listing has found it yet"
    if discovery.progress.queue is not None:
        never += ", no event has named it"
        not_yet = "neither a listing nor an event has named it yet"
    modified, trouble = _modified_now(candidate, root)
    if trouble is not None:
        return FileHistory(url, name, "unknown", f"{url} {never}; {how}. Its existence is unknown: {trouble}.")
    if modified is None:
        return FileHistory(url, name, "absent", f"{url} {never}, and it is not there now; {how}.")
    written, limit = f"written {modified:%Y-%m-%d %H:%M:%S} UTC", candidate.source.not_before
    if limit is not None and modified < limit:
        text = f"{url} is there ({written}); source {name} leaves out what is older than {limit:%Y-%m-%d %H:%M:%S} UTC."
        return FileHistory(url, name, "too_old", text)
    listed_at, uncommitted = discovery.progress.listed_at, RunFiles.read(store, owner).uncommitted.get(name, 0)
    if uncommitted and (listed_at is None or modified <= listed_at):
        are = "is" if uncommitted == 1 else "are"
        text = (
            f"{url} is there ({written}), and no committed epoch has it yet: {counted(uncommitted, 'file')} of source "
            f"{name} {are} being read, or {'waits' if uncommitted == 1 else 'wait'} for the commit of an epoch; {how}."
        )
        return FileHistory(url, name, "in_flight", text)
    text = f"{url} is there ({written}), but {not_yet}; {how}."
    return FileHistory(url, name, "not_listed", text)


def _modified_now(candidate: _Candidate, root: Location) -> tuple[datetime | None, str | None]:
    """The modification time of the object, None if it does not exist; or the reason why that is unknown."""
    location = Location(source_url(candidate.source.definition))
    if location.scheme == root.scheme:
        location = Location(location.url, root.storage_options)
    if location.is_local and not location.path.is_dir():
        return None, None
    try:
        found = ObjectStore(location).find(candidate.source.name, candidate.relative)
        return None if found is None else found.last_modified, None
    except SlackwaterError as error:
        return None, str(error)


class _Times:
    """The time of each epoch: that of its commit, by which it is found, or of its begin if it is not retained."""

    def __init__(self, store: StateStore) -> None:
        times = store.epoch_times()
        columns = (times[name].to_pylist() for name in ("epoch", "committed_at"))
        self._committed = dict(zip(*columns, strict=True))

    def __call__(self, epoch: int | None) -> str:
        if epoch is None:
            return "an epoch that was not recorded"
        if epoch in self._committed:
            return f"epoch {epoch} ({self._committed[epoch]:%Y-%m-%d %H:%M:%S} UTC)"
        return f"epoch {epoch} (begun {epoch_time(epoch):%Y-%m-%d %H:%M:%S} UTC, no longer retained)"
