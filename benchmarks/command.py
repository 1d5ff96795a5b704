"""A benchmark as a command: it measures, prints, and stores its result and its plots when it is asked to."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table as TextTable

from benchmarks.bar_chart import bar_chart
from benchmarks.calibration import calibrate, in_calibrations
from benchmarks.line_chart import line_chart
from benchmarks.machine import describe_machine
from benchmarks.result import Result, Table, dumped


def run_benchmark(measure: Callable[[Namespace], Result], arguments: ArgumentParser) -> None:
    """The `main` of a benchmark.

    Args:
        measure: from the options to what was found.
        arguments: its own; `--json` and `--plots` are added.
    """
    arguments.add_argument("--json", type=Path, metavar="FILE", help="where the result is stored")
    arguments.add_argument("--plots", type=Path, metavar="DIRECTORY", help="where the plots go, as SVG")
    options = arguments.parse_args()
    print(describe_machine(), flush=True)
    before_s = calibrate()
    result = measure(options)
    result = in_calibrations(result, (before_s + calibrate()) / 2)
    print_result(result)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(dumped(result.as_json()), encoding="utf-8")
    if options.plots is not None:
        write_plots(result, options.plots)


def print_result(result: Result) -> None:
    """The tables for a terminal."""
    console = Console(width=None if Console().is_terminal else 160, highlight=False)
    for table in result.tables:
        if table.caption:
            console.print(f"{table.caption}:", markup=False)
        console.print(_text_table(table))
    for remark in result.remarks:
        console.print(remark, markup=False)


def write_plots(result: Result, directory: Path) -> list[str]:
    """Draws the plots; returns their names."""
    drawn = {each.name: bar_chart(each) for each in result.bars}
    drawn |= {each.name: line_chart(each) for each in result.lines}
    directory.mkdir(parents=True, exist_ok=True)
    for name, svg in drawn.items():
        (directory / f"{name}.svg").write_text(svg, encoding="utf-8")
    return list(drawn)


def _text_table(table: Table) -> TextTable:
    text = TextTable(box=None, pad_edge=False)
    heads, *rows = table.cells()
    for number, head in enumerate(heads):
        # Only names and notes have no head.
        text.add_column(head, justify="right" if head else "left", no_wrap=number == 0)
    for row in rows:
        text.add_row(*row)
    return text
