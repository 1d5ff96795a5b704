"""`slackwater status`: one screen about a root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from slackwater.cli.display.after_commit_list import COLUMNS as AFTER_COLUMNS
from slackwater.cli.display.after_commit_list import after_commit_lines, after_commit_rows
from slackwater.cli.display.expectation_list import COLUMNS as EXPECTATION_COLUMNS
from slackwater.cli.display.expectation_list import SHORT as EXPECTATION_SHORT
from slackwater.cli.display.expectation_list import held_lines, quarantine_lines
from slackwater.cli.display.publication_list import COLUMNS as PUBLICATION_COLUMNS
from slackwater.cli.display.publication_list import publication_lines, publication_rows
from slackwater.cli.display.view_block import utc
from slackwater.cli.display.view_list import view_rows
from slackwater.status.text import counted, shell_root
from slackwater.terminal.output import Output
from slackwater.terminal.quantities import human_duration
from state.clock import SystemClock
from state.epoch import epoch_time
from state.location import Location
from state.visible import visible

if TYPE_CHECKING:
    import pyarrow as pa

    from slackwater.reading.store import Store
    from state.ownership.owner import Owner

_STATUSES = ("waiting", "reading", "done", "quarantined", "vanished")
_QUEUE_COLUMNS = ("source", "in_flight", "oldest_s", "redelivered", "poison", "url")
_UNFINISHED: Final = ("waiting", "reading")
_SHOWN_QUARANTINED = 10
_HIDDEN_COLUMNS = ("names", "reads", "rows", "bytes", "rows_in_memory", "bytes_in_memory")
_SOURCE_COLUMNS = ("name", "waiting", "reading", "done", "quarantined", "rows", "rows_bad", "watermark", "url")
_VIEW_COLUMNS = ("name", "class", "state", "rows", "version", "path")


def print_status(store: Store, output: Output) -> None:
    """Prints the owner of the root, the last epoch, sources, views, quarantined files and bad records."""
    import pyarrow as pa

    store = store.frozen()
    owner = store.owner()
    epochs = store.epoch_times()
    last: Mapping[str, Any] | None = next(iter(store.epochs(limit=1).to_pylist()), None)
    files = store.count_files()
    unfinished = pa.concat_tables([store.files(status=status) for status in _UNFINISHED])
    declared = store.sources().to_pylist()
    now = SystemClock().now()
    sources = [_source(row, files, unfinished, epochs, now) for row in declared]
    paused = {row["name"]: row["paused_removals"] for row in declared if row["paused_removals"]}
    queues = [_queue(row) for row in declared if row["queue"] is not None]
    left_out = [{"source": row["name"], **column} for row in declared for column in row["left_out"]]
    missing = [{"source": row["name"], **column} for row in declared for column in row["missing"]]
    backfills = store.backfills().to_pylist()
    views = view_rows(store, [row["name"] for row in backfills])
    root = shell_root(Location(store.root))
    publications = publication_rows(owner, epochs.to_pylist(), now)
    after_commit = after_commit_rows(owner)
    expectations, published = store.expectations().to_pylist(), store.published_epoch()
    hidden_views = store.hidden_views().to_pylist()
    quarantined = store.files(status="quarantined").select(["source", "path", "status", "error"]).to_pylist()
    bad_records = [found for source in sources if (found := _bad_records(source, files, store)) is not None]
    warnings = store.warnings()
    if output.json:
        output.document(
            {
                "warnings": warnings,
                "owner": asdict(owner) if owner else None,
                "epoch": last,
                "sources": sources,
                "queues": queues,
                "left_out": left_out,
                "missing": missing,
                "views": views,
                "backfills": backfills,
                "expectations": expectations,
                "published": published or None,
                "publications": publications,
                "after_commit": after_commit,
                "hidden_views": hidden_views,
                "quarantined": quarantined,
                "bad_records": bad_records,
            }
        )
        return
    for warning in warnings:
        output.text(f"warning: {warning}")
    if owner is None:
        output.text("owner: none")
    else:
        error = f"; last error: {owner.last_error}" if owner.last_error else ""
        phase = f"{owner.phase}{_silence(owner, now)}"
        output.text(f"owner: {phase}, process {owner.pid} on {owner.host}, pipeline {owner.pipeline}{error}")
        if owner.fetchers and not owner.released:
            output.text(f"fetch actors: {owner.fetchers}{f' ({owner.scaling})' if owner.scaling else ''}")
    output.text(
        "epoch: none yet" if last is None else f"epoch: {last['epoch']}, committed at {utc(last['committed_at'])}"
    )
    output.rows(sources, list(sources[0]) if sources else ["name"], title="sources", short=_SOURCE_COLUMNS)
    if queues:
        title = "queues: messages in flight, and counts since the last start"
        output.rows(queues, list(queues[0]), title=title, short=_QUEUE_COLUMNS)
    for queue in queues:
        if queue["poison"]:
            count = f"{queue['poison']:,} poison messages are quarantined"
            output.text(f"source {queue['source']}: {count}; `slackwater quarantine {root}` shows them")
    for row in declared:
        if row["paused"] is not None:
            output.text(f"source {row['name']} is paused: {row['paused']}")
    for name, files in paused.items():
        output.text(
            f"source {name}: removals are paused: {counted(files, 'file')} {'is' if files == 1 else 'are'} missing, "
            "and the rows stay in the views; bring the files back, or let them go with "
            f"`slackwater allow-removals {root} --source {name}`"
        )
    at = {row["epoch"]: row["committed_at"] for row in epochs.to_pylist()}
    output.rows(views, _VIEW_COLUMNS, title="views: any Lance reader opens a path at its tag `committed`")
    for view in views:
        if view["error"] is not None:
            _print_failure(view, at, root, output)
    if expectations:
        output.rows(expectations, EXPECTATION_COLUMNS, title="expectations: rows that violate", short=EXPECTATION_SHORT)
        for line in (*held_lines(expectations, published, root), *quarantine_lines(expectations, root)):
            output.text(line)
    if backfills:
        output.rows(backfills, ("name", "class", "fraction"), title="backfills: views that are shown when complete")
    if publications:
        output.rows(publications, list(publications[0]), title="publications", short=PUBLICATION_COLUMNS)
        for line in publication_lines(publications, is_over=owner is None or owner.is_gone()):
            output.text(line)
    if after_commit:
        output.rows(after_commit, AFTER_COLUMNS, title="files after the commit, since the last start")
        for line in after_commit_lines(after_commit):
            output.text(line)
    if hidden_views:
        shown_hidden = [
            {**each, "names": " ".join(each["names"]), "reads": " ".join(each["reads"])} for each in hidden_views
        ]
        output.rows(shown_hidden, _HIDDEN_COLUMNS, title="hidden views: rows kept for joins, windows and groups within")
    if left_out:
        output.rows(left_out, ("source", "column", "path"), title="ignored columns, and their first files")
    if missing:
        title = "columns that files lack, null in their rows, and the first of these files"
        output.rows(missing, ("source", "column", "path"), title=title)
    if quarantined:
        shown = quarantined[:_SHOWN_QUARANTINED]
        output.rows(shown, ("source", "path", "error"), title=f"quarantined: {len(quarantined):,}")
        output.text(f"`slackwater files {root} --status quarantined` shows all of them")
    if bad_records:
        output.rows(
            bad_records, list(bad_records[0]), title="bad records, and the first of each source, its row counted from 0"
        )
        output.text(f"`slackwater quarantine {root}` shows all of them")


def _silence(owner: Owner, now: datetime) -> str:
    """The doubt in the phase that a process wrote last, in words; empty without one."""
    from slackwater.watching.owner_watch import SILENT_S

    if owner.released:
        return ""
    if owner.is_dead():
        return " (its last word: the process is gone)"
    silent_s = (now - owner.renewed_at).total_seconds()
    return f" (no sign of life for {human_duration(silent_s)})" if silent_s >= SILENT_S else ""


def _print_failure(view: Mapping[str, Any], at: Mapping[int, datetime], root: str, output: Output) -> None:
    """Prints where a failed view stands with the next step, and its error as a line of its own.

    Args:
        view: the view.
        at: epoch → the time of its commit.
        root: the root, as an argument of a command.
        output: of the command.
    """
    stands_at, name = view["reflects_epoch"], view["name"]
    since = "" if stands_at not in at else f" ({utc(at[stands_at])})"
    rows = "it has no rows" if stands_at is None else f"it stands at epoch {stands_at}{since}"
    step = f"correct it or its files, and build it anew with `slackwater retry {root} --view {name}`"
    output.text(f"view {name} has failed: {rows}; {step}")
    line = f"view {name}: {' '.join(view['error'].split())}"
    if output.console.is_terminal:
        output.console.print(Text(visible(line)), no_wrap=True, overflow="ellipsis")
    else:
        output.text(line)


def _source(
    source: Mapping[str, Any], files: pa.Table, unfinished: pa.Table, epochs: pa.Table, now: datetime
) -> Mapping[str, Any]:
    """A source with its files in each state, the rows of its views, and its bad records.

    Also the age of the oldest unfinished file, in retained epochs and in seconds, and the last record of its listings.
    """
    import pyarrow.compute as pc

    from slackwater.watching.stored_status import source_counts

    counts = source_counts(files, source["name"])
    mine = unfinished.filter(pc.equal(unfinished["source"], source["name"]))
    return {
        "name": source["name"],
        "url": source["url"],
        "format": source["format"],
        **{status: getattr(counts, status) for status in _STATUSES},
        "rows": counts.rows,
        "rows_bad": counts.rows_bad,
        "changes_ignored": source["changes_ignored"],
        **_oldest_unfinished(mine, epochs, now),
        "listed_at": source["listed_at"],
        "requests_per_hour": source["requests_last_hour"],
        "listing_period_s": source["period_s"],
        "stretched_by": source["stretched_by"],
        "paused_removals": source["paused_removals"],
        "paused": source["paused"],
        "watermark": source["watermark"],
    }


def _queue(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """The queue of a source, with the files that the last listing found without an event."""
    queue = source["queue"]
    oldest_s = None if queue["oldest_s"] is None else round(queue["oldest_s"], 1)
    return {
        "source": source["name"],
        **{name: queue[name] for name in ("url", "in_flight")},
        "oldest_s": oldest_s,
        **{name: queue[name] for name in ("received", "redelivered", "poison")},
        "listed_at": source["listed_at"],
        "found_by_listing": queue["found_by_listing"],
    }


def _oldest_unfinished(unfinished: pa.Table, epochs: pa.Table, now: datetime) -> Mapping[str, Any]:
    import pyarrow.compute as pc

    listed = pc.min(unfinished["listed_epoch"]).as_py()
    if listed is None:
        return {"unfinished_epochs": 0, "unfinished_s": 0.0}
    return {
        "unfinished_epochs": pc.sum(pc.greater(epochs["epoch"], listed)).as_py() or 0,
        "unfinished_s": round((now - epoch_time(listed)).total_seconds(), 1),
    }


def _bad_records(source: Mapping[str, Any], files: pa.Table, store: Store) -> Mapping[str, Any] | None:
    """The first bad record of a source, and the numbers of records and files; None without a bad record."""
    if not source["rows_bad"]:
        return None
    found = store.find_bad_records(source["name"], limit=1).rows.to_pylist()
    return {
        "source": source["name"],
        "records": source["rows_bad"],
        "files": sum(row["files_bad"] for row in files.to_pylist() if row["source"] == source["name"]),
        "path": found[0]["path"] if found else "",
        "first": store.why(found[0]["path"]).first_bad if found else "their content is cleared",
    }
