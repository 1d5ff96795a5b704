"""The block of the sources: on the display of a run one line for each, and on `slackwater status` with the queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from actors.telemetry.counted import counters_of
from slackwater.cli.display.root_facts import RootFacts
from slackwater.cli.terminal.fixed_table import Column, fixed_table
from slackwater.cli.terminal.output import Output
from slackwater.status.quantities import human_bytes, human_count, human_rate, human_seconds
from slackwater.status.text import counted
from state.epoch import epoch_time
from state.visible import visible

if TYPE_CHECKING:
    import pyarrow as pa

    from actors.telemetry.counted import Counted, TerminalColumn
    from slackwater.status.run_status import SourceStatus


_STATUSES = ("waiting", "reading", "done", "quarantined", "vanished")
_UNFINISHED: Final = ("waiting", "reading")
_SHORT = ("name", "waiting", "reading", "done", "quarantined", "rows", "rows_bad", "watermark", "url")
_SHOWN_COLUMNS = 5
_QUEUE_SHORT = ("source", "in_flight", "oldest_s", "redelivered", "poison", "url")


class RootSources:
    """The sources of a root and their event queues, with the next step for paused sources."""

    def __init__(self, facts: RootFacts) -> None:
        import pyarrow as pa

        unfinished = pa.concat_tables([facts.store.ledger.files(status=status) for status in _UNFINISHED])
        self._declared, self._root = facts.sources, facts.root
        self._sources = [_source(row, facts, unfinished) for row in [*facts.sources, *_uncommitted(facts)]]
        self._queues = [_queue(row) for row in facts.sources if row["queue"] is not None]

    def document(self) -> Mapping[str, Any]:
        return {"sources": self._sources, "queues": self._queues}

    def show(self, output: Output) -> None:
        sources, queues = self._sources, self._queues
        output.rows(sources, list(sources[0]) if sources else ["name"], title="sources", short=_SHORT)
        for source in sources:
            if files := source["in_flight"]:
                are = "1 file is" if files == 1 else f"{files:,} files are"
                output.text(
                    f"source {source['name']}: {are} in flight: listed by the run, and not finished in an epoch"
                )
        if queues:
            title = "queues: messages in flight, and counts since the last start"
            output.rows(queues, list(queues[0]), title=title, short=_QUEUE_SHORT)
        for queue in queues:
            if queue["poison"]:
                count = f"{queue['poison']:,} poison messages are quarantined"
                output.text(f"source {queue['source']}: {count}; `slackwater quarantine {self._root}` shows them")
        for row in self._declared:
            if row["paused"] is not None:
                output.text(f"source {row['name']} is paused: {row['paused']}")
        for row in self._declared:
            if files := row["paused_removals"]:
                output.text(
                    f"source {row['name']}: removals are paused: {counted(files, 'file')} "
                    f"{'is' if files == 1 else 'are'} missing, and the rows stay in the views; bring the files back, "
                    f"or let them go with `slackwater allow-removals {self._root} --source {row['name']}`"
                )


def source_block(sources: Mapping[str, SourceStatus], lines: int, *, names: int, width: int) -> Table:
    """The sources, in at most `lines` lines; the last line summarises the sources that do not fit."""
    rows: list[tuple[str | Text, SourceStatus]] = list(sources.items())
    if len(rows) > lines:
        others = [status for _, status in rows[lines - 1 :]]
        rows = [*rows[: lines - 1], (Text(f"{len(others)} others", style="italic"), _sum(others))]
    return fixed_table("source", rows, _columns(type(rows[0][1])), names=names, width=width)


def source_notes(sources: Mapping[str, SourceStatus], most: int) -> list[Text]:
    """Notes on single sources, one line for each: a pause, paused removals, the watermark, bad records, columns that
    files lack, and the messages of a queue.
    """
    notes = [note for name, status in sources.items() if (note := _note(name, status))]
    if len(notes) <= most:
        return notes
    return [*notes[: most - 1], Text(f"{len(notes) - most + 1} other sources have such notes")]


def _uncommitted(facts: RootFacts) -> list[Mapping[str, Any]]:
    """The sources of a run that has not committed them yet, as rows of `Ledger.sources`."""
    from slackwater.reading.tables.source_table import SOURCE_SCHEMA

    status, committed = facts.run_files.status, {row["name"] for row in facts.sources}
    return [
        {
            **dict.fromkeys(SOURCE_SCHEMA.names),
            "name": name,
            "changes_ignored": 0,
            "listed_at": source.listed_at,
            "period_s": source.listing_period_s,
            "paused_removals": source.paused_removals,
            "paused": source.paused,
        }
        for name, source in (status.sources.items() if status else ())
        if name not in committed
    ]


def _source(source: Mapping[str, Any], facts: RootFacts, unfinished: pa.Table) -> Mapping[str, Any]:
    """A source with its files in each state, the rows of its views, and its bad records.

    Also the age of the oldest unfinished file, in retained epochs and in seconds, and the last record of its listings.
    """
    import pyarrow.compute as pc

    from slackwater.reading.watching.stored_status import source_counts

    counts = source_counts(facts.files, source["name"])
    mine = unfinished.filter(pc.equal(unfinished["source"], source["name"]))
    return {
        "name": source["name"],
        "url": source["url"],
        "format": source["format"],
        **{status: getattr(counts, status) for status in _STATUSES},
        "in_flight": facts.run_files.in_flight.get(source["name"], 0),
        "rows": counts.rows,
        "rows_bad": counts.rows_bad,
        "changes_ignored": source["changes_ignored"],
        **_oldest_unfinished(mine, facts.epochs, facts.now),
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


def _note(name: str, status: SourceStatus) -> Text | None:
    parts = []
    if status.paused is not None:
        parts.append(Text(f"paused: {visible(status.paused)}", style="bold red"))
    if status.paused_removals:
        missing = counted(status.paused_removals, "missing file")
        parts.append(Text(f"removals are paused: {missing}; see `slackwater allow-removals`", style="bold red"))
    if status.watermark is not None:
        lag = "" if status.watermark_lag_s is None else f", {human_seconds(status.watermark_lag_s)} behind"
        parts.append(Text(f"watermark {status.watermark:%Y-%m-%d %H:%M:%S}{lag}"))
    if status.rows_bad:
        parts.append(Text(counted(status.rows_bad, "bad record"), style="red"))
    if status.filled_columns:
        parts.append(Text(f"files lack {_names(status.filled_columns)}: null in their rows", style="red"))
    if (messages := status.messages) is not None:
        in_flight = Text(f"{counted(messages.in_flight, 'message')} in flight")
        if messages.in_flight:
            in_flight.append(f", oldest {messages.oldest_s:,.0f} s")
        parts.append(in_flight)
        for field, counter in counters_of(type(messages)).items():
            if counter.note and (number := getattr(messages, field)):
                parts.append(Text(f"{number:,} {counter.note}", style="red"))
    if not parts:
        return None
    return Text(f"{visible(name)}: ", no_wrap=True, overflow="ellipsis").append_text(Text(", ").join(parts))


def _names(columns: Sequence[str]) -> str:
    shown = ", ".join(map(visible, columns[:_SHOWN_COLUMNS]))
    return shown if len(columns) <= _SHOWN_COLUMNS else f"{shown} and {len(columns) - _SHOWN_COLUMNS} others"


def _sum(sources: Sequence[SourceStatus]) -> SourceStatus:
    shown: dict[str, Any] = {}
    for name, counter in counters_of(type(sources[0])).items():
        if counter.column is not None:
            values = [value for each in sources if (value := getattr(each, name)) is not None]
            # The worst of ages.
            shown[name] = max(values, default=None) if counter.unit == "seconds" else sum(values)
    return replace(sources[0], **shown)


def _cell(name: str, counter: Counted, column: TerminalColumn) -> Callable[[SourceStatus], Text | str]:
    def cell(source: SourceStatus) -> Text | str:
        value = getattr(source, name)
        text = _text(value, counter.unit, column.digits)
        return Text(text, style="bold red" if value else "") if column.is_alarm else text

    return cell


def _text(value: float | None, unit: str, digits: int) -> str:
    if value is None:
        return ""
    if unit.startswith("bytes"):
        return human_bytes(value)
    if unit.endswith("/s"):
        return human_rate(value)
    return human_seconds(value) if unit == "seconds" else human_count(int(value), digits)


def _columns(kind: type[SourceStatus]) -> Sequence[Column[SourceStatus]]:
    """The columns of the described numbers that have one, from left to right."""
    shown = [(name, each, each.column) for name, each in counters_of(kind).items() if each.column is not None]
    return [
        Column(column.title, column.width, column.rank, _cell(name, each, column))
        for name, each, column in sorted(shown, key=lambda known: known[2].position)
    ]
