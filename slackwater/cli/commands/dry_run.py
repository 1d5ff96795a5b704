"""`slackwater run --dry-run`: the work and the cost of a run, printed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from slackwater.cli.terminal.output import Output
from slackwater.cli.terminal.safe_console import print_note
from slackwater.status.text import counted
from state.errors import UsageError

if TYPE_CHECKING:
    from slackwater.extensions.file_action import AfterPlan
    from slackwater.extensions.planned_files import Files
    from slackwater.pipeline import Pipeline
    from slackwater.planning.dry_run.dry_run import DryRun
    from slackwater.planning.dry_run.prices import Prices
    from slackwater.planning.dry_run.source_survey import SourcePlan
    from slackwater.planning.dry_run.view_plans import PlannedView

_COUNTS = ("listed", "known", "left_out", "waiting", "new", "changed", "to_read")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_CENT = 0.01


def parsed_prices(lists: float | None, gets: float | None, *, is_dry: bool) -> Prices | None:
    """The prices on the command line; None for the default prices.

    Args:
        lists: dollars for 1,000 LIST requests.
        gets: dollars for 1,000 GET requests.
        is_dry: the command has --dry-run.

    Raises:
        UsageError: prices without --dry-run.
    """
    given = {name: price for name, price in (("lists", lists), ("gets", gets)) if price is not None}
    if not given:
        return None
    if not is_dry:
        raise UsageError("--list-price and --get-price need --dry-run: add it, or leave them out")
    from slackwater.planning.dry_run.prices import Prices

    return Prices(**given)


def print_dry_run(pipeline: Pipeline, prices: Prices | None, output: Output) -> DryRun:
    """Prints the sources as soon as they are known; then Spark starts, and the views follow."""

    def on_sources(found: DryRun) -> None:
        if not output.json:
            for line in _source_lines(found):
                output.text(line)
        if sys.stderr.isatty():
            print_note("starting Spark to analyse the views")

    found = pipeline.dry_run(prices=prices, on_sources=on_sources)
    if output.json:
        output.document(_document(found))
        return found
    for line in _view_lines(found):
        output.text(line)
    return found


def _source_lines(found: DryRun) -> Iterator[str]:
    beginning = "nothing is committed yet" if found.is_first else "continues from the last committed epoch"
    yield f"{found.pipeline} at {found.root}: {beginning}"
    if found.owner is not None:
        owner = found.owner
        yield f"owner: process {owner.pid} on {owner.host} ({owner.phase}); while it lives, a run is refused"
    for source in found.sources:
        yield f"source {source.name}: {source.url}, {source.pattern}"
        if source.listed.files or not (source.refused or source.paused):
            for name, text in _of_source(source).items():
                yield f"    {name:<10} {text}"
        for note in source.notes:
            yield f"    {'note':<10} {note}"
        if source.refused:
            yield f"    {'refused':<10} {source.refused}"
        if source.paused:
            yield f"    {'paused':<10} {source.paused}"
        for after in found.after:
            if after.source == source.name:
                yield from _after_lines(after)
    for table in found.publications:
        if table.refused is not None:
            yield f"view {table.view} to {table.table}: refused: {table.refused}"
        else:
            yield f"view {table.view} to {table.table}: publishes {table.beginning}"
    if len(found.sources) > 1:
        once, daily = _dollars(found.first_pass_dollars), _dollars(found.idle_day_dollars)
        yield f"all sources: first pass {once}, idle day {daily}"


def _of_source(source: SourcePlan) -> Mapping[str, str]:
    """The lines of a source: label → text."""
    first, idle, asked = source.first_pass, source.idle_day, source.asked
    lines = {"listed": f"{_files(source.listed)}, in {first.lists:,} LIST"}
    if source.known.files:
        lines["known"] = f"{_files(source.known)}, not read again"
    if source.left_out.files:
        lines["skipped"] = f"{_files(source.left_out)}, written before the declared start of the source"
    parts = {"new": source.new, "waiting in the queue": source.waiting, "changed": source.changed}
    counts = ", ".join(f"{files.files:,} {name}" for name, files in parts.items() if files.files)
    lines["to read"] = f"{_files(source.to_read)}: {counts}" if counts else "nothing"
    lines["requests"] = (
        f"{first.lists:,} LIST and about {first.gets:,} GET with all columns: {_dollars(source.first_pass_dollars)}"
    )
    queue = f" and {idle.queue:,.0f} requests to the queue" if idle.queue else ""
    lines["idle"] = (
        f"a listing every {source.period_s:g} s: {idle.lists:,.0f} LIST{queue} a day: "
        f"{_dollars(source.idle_day_dollars)}"
    )
    if source.schema is not None:
        lines["schema"] = ", ".join(f"{field.name} {field.type}" for field in source.schema)
    lines["dry run"] = f"{asked.lists:,} LIST, {asked.gets:,} GET for this dry run"
    return lines


def _after_lines(after: AfterPlan) -> Iterator[str]:
    """The lines about files after the commit."""
    shown = f": {', '.join(after.first)}{', ...' if after.due.files > len(after.first) else ''}" if after.first else ""
    yield f"    {'after':<10} {after.action}: {_files(after.due)} now{shown}"
    if after.later.files:
        why = after.waits_for or "they have to be committed for the stated time"
        yield f"    {'':<10} {_files(after.later)} later: {why}"
    if after.tables:
        yield f"    {'':<10} each when the tables of {', '.join(after.tables)} have its rows; they are not asked now"
    if not after.keeps_rows:
        yield (
            f"    {'note':<10} a view that is declared later cannot have the rows of files that are deleted: "
            "materialize=True keeps them"
        )


def _view_lines(found: DryRun) -> Iterator[str]:
    for view in found.views:
        is_planned = "" if view.is_refused else f"{view.view_class}, "
        yield f"view {view.name}: {is_planned}{view.beginning}"
        for line in view.text.splitlines():
            yield f"  {line}" if line.startswith("  ") else f"    {line}"
    refused = [f"source {each.name}" for each in found.sources if each.refused]
    refused += [f"view {each.name}" for each in found.views if each.is_refused]
    refused += [f"table {each.table}" for each in found.publications if each.refused is not None]
    if refused:
        yield f"a run would be refused: {', '.join(refused)}"
    else:
        pauses = f", and pause {', '.join(f'source {name}' for name in found.paused)}" if found.paused else ""
        yield f"a run would start{pauses}; nothing was written"


def _document(found: DryRun) -> Mapping[str, Any]:
    return {
        "pipeline": found.pipeline,
        "root": found.root,
        "is_first": found.is_first,
        "owner": None if found.owner is None else asdict(found.owner),
        "is_refused": found.is_refused,
        "first_pass_dollars": found.first_pass_dollars,
        "idle_day_dollars": found.idle_day_dollars,
        "sources": [_source_document(each) for each in found.sources],
        "views": [_view_document(each) for each in found.views],
        "after": [asdict(each) for each in found.after],
        "publications": [asdict(each) for each in found.publications],
    }


def _source_document(source: SourcePlan) -> Mapping[str, Any]:
    schema = None if source.schema is None else [{"name": each.name, "type": str(each.type)} for each in source.schema]
    return {
        "name": source.name,
        "url": source.url,
        "pattern": source.pattern,
        **{name: asdict(getattr(source, name)) for name in _COUNTS},
        "first_pass": asdict(source.first_pass),
        "first_pass_dollars": source.first_pass_dollars,
        "period_s": source.period_s,
        "idle_day": asdict(source.idle_day),
        "idle_day_dollars": source.idle_day_dollars,
        "asked": asdict(source.asked),
        "schema": schema,
        "notes": list(source.notes),
        "refused": source.refused,
        "paused": source.paused,
    }


def _view_document(view: PlannedView) -> Mapping[str, Any]:
    return {"name": view.name, "class": view.view_class, "beginning": view.beginning, "text": view.text}


def _files(count: Files) -> str:
    return f"{counted(count.files, 'file')}, {_bytes(count.bytes)}"


def _bytes(count: int) -> str:
    amount, unit = float(count), _UNITS[0]
    for following in _UNITS[1:]:
        if amount < 1024:
            break
        amount, unit = amount / 1024, following
    return f"{count:,} bytes" if unit == _UNITS[0] else f"{amount:,.1f} {unit}"


def _dollars(amount: float) -> str:
    if not amount:
        return "free"
    return f"${amount:,.2f}" if amount >= _CENT else "less than $0.01"
