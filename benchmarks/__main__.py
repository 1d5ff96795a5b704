"""All benchmarks, or some of them, each in a process of its own; then the page is written.

    python -m benchmarks [--quick] [--only NAME ...] [--write]

Without `--write` the page is `build/benchmarks/benchmarks.md` (of quick runs `build/benchmarks/quick/benchmarks.md`);
with it the results go into `benchmarks/results/`, and the page is `docs/benchmarks.md`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import readme
from benchmarks.catalogue import CATALOGUE, chosen
from benchmarks.page import write_page
from benchmarks.record import Archive, Record
from benchmarks.runner import Runner

_PROJECT = Path(__file__).parents[1]


def main(words: Sequence[str] | None = None) -> int:
    """Returns the exit code: 1 if a benchmark has failed."""
    arguments = argparse.ArgumentParser("python -m benchmarks", description="Runs benchmarks, and writes their page.")
    arguments.add_argument("--quick", action="store_true", help="small sizes of those that matter most (3 minutes)")
    arguments.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these; the results of others stay")
    arguments.add_argument("--write", action="store_true", help="into docs/benchmarks.md and benchmarks/results/")
    arguments.add_argument("--page-only", action="store_true", help="measure nothing; rewrite the page")
    arguments.add_argument("--build", type=Path, default=_PROJECT / "build" / "benchmarks", help=argparse.SUPPRESS)
    options = arguments.parse_args(words)
    if options.quick and options.write:
        arguments.error("quick numbers are not for docs/benchmarks.md: leave out --quick, or --write")
    try:
        entries = [] if options.page_only else chosen(options.only, quick=options.quick)
    except ValueError as error:
        arguments.error(str(error))
    build = options.build / "quick" if options.quick else options.build
    archives = [Archive(build)]
    page = build / "benchmarks.md"
    if options.write:
        archives.append(Archive(_PROJECT / "benchmarks" / "results"))
        page = _PROJECT / "docs" / "benchmarks.md"
    runner = Runner(build, quick=options.quick)
    failed, started = 0, time.perf_counter()
    for number, entry in enumerate(entries, 1):
        print(f"{number}/{len(entries)} {entry.command(quick=options.quick)}", end=" ", flush=True)
        try:
            record = runner.run(entry)
        except KeyboardInterrupt:
            print(f"interrupted: what was measured before is in {page}")
            return 130
        failed += record.failed is not None
        print(_said(record), flush=True)
        for archive in archives:
            archive.put(record)
        _write(archives[-1], page)
    _write(archives[-1], page)
    if options.write and (measured := archives[-1].get(readme.NAME)) is not None:
        readme.write_speed(measured, _PROJECT / "README.md")
    print(f"{len(entries)} benchmarks, {failed} failed, {time.perf_counter() - started:.0f} s: {page}")
    return min(failed, 1)


def _write(archive: Archive, page: Path) -> None:
    """After each benchmark: what was found is not lost with what comes later."""
    records = {entry.name: record for entry in CATALOGUE if (record := archive.get(entry.name)) is not None}
    write_page(records, page)


def _said(record: Record) -> str:
    if record.run is None or record.result is None:
        return f"failed: {record.reason}"
    judged = [row.meets_target for row in record.result.targets]
    targets = f", {sum(map(bool, judged))} of {len(judged)} targets met" if judged else ""
    return f"{record.run.seconds:.0f} s{targets}"


if __name__ == "__main__":
    sys.exit(main())
