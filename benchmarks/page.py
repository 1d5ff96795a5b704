"""`docs/benchmarks.md`, from the records and the texts beside the benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.bar_chart import bar_chart
from benchmarks.catalogue import CATALOGUE, Entry
from benchmarks.line_chart import line_chart
from benchmarks.record import Record, Run
from benchmarks.result import Result, Table

PROSE = Path(__file__).with_name("prose")
_MARK = "<!-- results -->"
_TARGETS = "<!-- targets -->"
_MADE = "<!-- Made by `python -m benchmarks --write` from benchmarks/results and benchmarks/prose: edit those. -->\n"


def write_page(records: Mapping[str, Record], page: Path, entries: Sequence[Entry] = CATALOGUE) -> None:
    """Writes the page, and its plots into `images/` beside it."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(rendered(records, entries), encoding="utf-8")
    images = page.parent / "images"
    images.mkdir(exist_ok=True)
    for record in records.values():
        for name, svg in plots_of(record).items():
            (images / f"{name}.svg").write_text(svg, encoding="utf-8")


def plots_of(record: Record) -> dict[str, str]:
    """Name -> SVG."""
    if record.result is None:
        return {}
    drawn = {plot.name: bar_chart(plot) for plot in record.result.bars}
    return drawn | {plot.name: line_chart(plot) for plot in record.result.lines}


def rendered(records: Mapping[str, Record], entries: Sequence[Entry] = CATALOGUE) -> str:
    """The page as Markdown: a section for each benchmark, whether it was measured or not."""
    opening = (PROSE / "_opening.md").read_text(encoding="utf-8").replace(_TARGETS, _summary(records, entries))
    sections = [_section(entry, records.get(entry.name)) for entry in entries]
    return "\n".join([_MADE, opening.rstrip() + "\n", *sections])


def _section(entry: Entry, record: Record | None) -> str:
    prose = (PROSE / f"{entry.name}.md").read_text(encoding="utf-8")
    before, mark, after = prose.partition(_MARK)
    if not mark:
        raise ValueError(f"{PROSE / entry.name}.md has no line {_MARK}")
    return f"{before}{_found(entry, record)}{after}".rstrip() + "\n"


def _found(entry: Entry, record: Record | None) -> str:
    if record is None:
        return f"Not measured yet: `{entry.command(quick=False)}`."
    parts = []
    if record.failed is not None:
        parts.append(f"**The last run failed**: {_origin(record.failed)}: {_cell(record.reason)}.")
    if record.run is not None and record.result is not None:
        parts.append(f"{_origin(record.run)}:")
        parts += _blocks(record.result)
    return "\n\n".join(parts)


def _origin(run: Run) -> str:
    return f"`{run.command}`, {run.day}, {run.seconds:.0f} s in all, on {run.machine}"


def _blocks(result: Result) -> list[str]:
    tables = [
        f"{table.caption}:\n\n{_markdown(table)}" if table.caption else _markdown(table) for table in result.tables
    ]
    titles = {plot.name: plot.title for plot in result.bars} | {plot.name: plot.title for plot in result.lines}
    plots = [f"![{title}](images/{name}.svg)" for name, title in titles.items()]
    return [*tables, *(_cell(each) for each in result.remarks), *plots]


def _markdown(table: Table) -> str:
    heads, *rows = table.cells()
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("|" + "".join(f" {_cell(cell)} |" if cell else " |" for cell in line) for line in lines)


def _summary(records: Mapping[str, Record], entries: Sequence[Entry]) -> str:
    """Every target, with what was measured and where."""
    lines = []
    for entry in entries:
        record = records.get(entry.name)
        if record is None or record.result is None:
            continue
        title = _title(entry)
        anchor = "".join(each for each in title.lower().replace(" ", "-") if each.isalnum() or each == "-")
        for row in record.result.targets:
            lines.append(f"| [{title}](#{anchor}): {_cell(row.name)} | {row.target} | {row.judged} | {row.verdict} |")
    return "\n".join(["| | target | measured | |", "|---|---|---|---|", *lines]) if lines else "None was measured yet."


def _title(entry: Entry) -> str:
    first = (PROSE / f"{entry.name}.md").read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
