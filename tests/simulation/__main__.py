"""`python -m tests.simulation`: many seeds, or one again."""

from __future__ import annotations

import os

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from state.clock import SystemClock
from tests.simulation.campaign import failing_seeds, scenario_of
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.shrink import failure_of, shrink
from tests.simulation.simulation import Simulation

_SHRINK_AT_MOST = 3
_console = Console(soft_wrap=True, highlight=False)


def main(
    seeds: int = typer.Option(1_000, min=1, help="How many seeds."),
    start: int = typer.Option(0, min=0, help="The first seed."),
    jobs: int = typer.Option(os.cpu_count() or 1, min=1, help="Processes that share the work."),
    seed: int | None = typer.Option(None, help="Only this seed."),
    trace: bool = typer.Option(False, help="With --seed: print everything that happens."),
) -> None:
    """Tells a random story for each seed, and checks the promises."""
    raise typer.Exit(_run_many(start, seeds, jobs) if seed is None else _run_one(seed, trace))


def _run_many(start: int, seeds: int, jobs: int) -> int:
    clock = SystemClock()
    started_s = clock.monotonic()
    failing: list[int] = []
    columns = (TextColumn("seeds"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_console, transient=True, disable=not _console.is_terminal) as progress:
        task = progress.add_task("seeds", total=seeds)
        for done, found in failing_seeds(start, seeds, jobs):
            failing += found
            progress.advance(task, done)
    seconds = clock.monotonic() - started_s
    named = f": {', '.join(map(str, failing))}" if failing else ""
    rate = f"{seconds:.1f} s, {seeds / seconds:.0f}/s"
    _console.print(f"{seeds} seeds from {start} in {rate}: {len(failing)} failed{named}", markup=False)
    for each in failing[:_SHRINK_AT_MOST]:
        _explain(each)
    return 1 if failing else 0


def _run_one(seed: int, trace: bool) -> int:
    scenario = scenario_of(seed)
    _console.print(repr(scenario), markup=False)
    try:
        outcome = Simulation(scenario, seed, _print if trace else None).run()
    except PromiseBroken as broken:
        if trace:
            _console.print(f"{broken}", markup=False)
        else:
            _explain(seed)
        return 1
    _console.print(repr(outcome), markup=False)
    return 0


def _explain(seed: int) -> None:
    failure = failure_of(scenario_of(seed), seed)
    assert failure is not None, f"seed {seed} failed once and not again: something depends on more than the seed"
    _console.print(f"\nseed {seed}: {failure.broken}", markup=False)
    _console.print(f"  replay: python -m tests.simulation --seed {seed} --trace", markup=False)
    _console.print(f"  shortest: {shrink(failure)}", markup=False)


def _print(line: str) -> None:
    _console.print(line, markup=False)


if __name__ == "__main__":
    typer.run(main)
