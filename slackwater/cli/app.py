"""The command `slackwater`: run, explain, verify and demo; the other commands are in `slackwater/cli/commands`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from slackwater.cli.application import app as app
from slackwater.cli.application import command
from slackwater.cli.commands import (  # noqa: F401 - each adds its commands
    alerts,
    asking,
    branching,
    doctor,
    gate,
    init,
    observing,
    publishing,
    reading,
    upkeep,
)
from slackwater.cli.options import (
    AtEpoch,
    Json,
    LogJson,
    LogLevel,
    Root,
    StorageOptions,
    Takeover,
    Wide,
    opened_store,
)
from slackwater.cli.terminal.output import Output
from state.errors import UsageError

Target = Annotated[str, typer.Argument(metavar="APP:PIPELINE", help="e.g. app.py:pipeline or package.module:pipeline")]


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script: parses the arguments (default: of the process), runs the command, and exits."""
    app(args=list(arguments) if arguments is not None else None, prog_name="slackwater")


def _print_version(wanted: bool) -> None:
    if wanted:
        from slackwater import __version__

        Output().text(f"slackwater {__version__}")
        raise typer.Exit


@app.callback()
def _slackwater(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Keeps SQL views up to date over the files that arrive in an object store."""


@command()
def run(
    target: Target,
    until: Annotated[
        Literal["caught_up"] | None,
        typer.Option("--until", help="end when all listed files are committed; by default run forever"),
    ] = None,
    takeover: Takeover = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="only print the files to read, the cost, and errors in the declaration")
    ] = False,
    list_price: Annotated[
        float | None,
        typer.Option("--list-price", min=0, help="for --dry-run: dollars for 1,000 LIST requests; by default 0.005"),
    ] = None,
    get_price: Annotated[
        float | None,
        typer.Option("--get-price", min=0, help="for --dry-run: dollars for 1,000 GET requests; by default 0.0004"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="print events, one JSON document per line; the last is the report")
    ] = False,
    log_level: Annotated[
        str | None,
        typer.Option("--log-level", help="debug, info, warning or error; by default info, or warning on a terminal"),
    ] = None,
    log_json: LogJson = False,
) -> None:
    """Run a pipeline.  Ctrl-C ends it after a last epoch; the next start continues where it stopped."""
    from actors.telemetry.logging import configure
    from slackwater.cli.commands.dry_run import parsed_prices, print_dry_run
    from slackwater.cli.display.session import (
        has_display,
        print_incomplete,
        print_report,
        show_run,
    )
    from slackwater.cli.target import load_pipeline

    output = Output(json)
    configure(log_level or ("warning" if has_display(output) else "info"), log_json)
    prices = parsed_prices(list_price, get_price, is_dry=dry_run)
    if dry_run:
        sys.exit(print_dry_run(load_pipeline(target), prices, output).exit_code)
    report = show_run(load_pipeline(target), until, takeover, output)
    if not json:
        print_report(report, output)
    print_incomplete(report)
    if report.exit_code:
        sys.exit(report.exit_code)


@command()
def explain(
    target: Annotated[str, typer.Argument(metavar="APP:PIPELINE|ROOT", help="a pipeline, or a root")],
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="VIEW",
            help="compare this view with the stored one: the cost of a change",
        ),
    ] = None,
    wide: Wide = False,
    option: StorageOptions = None,
    json: Json = False,
    log_level: LogLevel = "warning",
) -> None:
    """Print the class of each view, and the reason for it.  A refused view has the operator that prevents it."""
    from actors.telemetry.logging import configure
    from slackwater.cli.commands.explain import print_change, print_explanations
    from slackwater.cli.display.view_list import print_views
    from slackwater.cli.target import load_pipeline

    configure(log_level)
    is_root = "://" in target or Path(target).is_dir()
    if against is not None and is_root:
        raise UsageError(f"--against compares a view of a pipeline; {target} is a root: give APP:PIPELINE")
    if against is not None:
        print_change(load_pipeline(target).explain_change(against), Output(json))
    elif is_root:
        print_views(opened_store(target, option), Output(json, wide))
    elif not print_explanations(load_pipeline(target), Output(json)):
        sys.exit(1)


@command()
def verify(
    root: Root,
    epoch: AtEpoch = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--app", metavar="APP:PIPELINE", help="the pipeline, with the places of its sources and its functions"
        ),
    ] = None,
    follow_sources: Annotated[
        bool,
        typer.Option("--follow-sources", help="read the files where the root says: for a root whose writers you trust"),
    ] = False,
    engine: Annotated[
        Literal["auto", "duckdb", "spark"],
        typer.Option("--engine", help="auto: DuckDB, and Spark where DuckDB differs"),
    ] = "auto",
    timeout_s: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="the longest computation of a view", min=0.001)
    ] = 3_600.0,
    option: StorageOptions = None,
    json: Json = False,
    log_level: LogLevel = "warning",
) -> None:
    """Compute every view again, and compare.  Exit code 0: all views are equal.

    The computation reads the files in the ledger.
    """
    from actors.telemetry.logging import configure
    from slackwater.cli.commands.verify import print_verification
    from slackwater.cli.target import load_pipeline

    configure(log_level)
    pipeline = load_pipeline(target) if target else None
    store = opened_store(root, option)
    if not print_verification(store, epoch, pipeline, follow_sources, engine, timeout_s, Output(json)).all_equal:
        sys.exit(1)


@command()
def demo(
    local: Annotated[bool, typer.Option("--local", help="use a directory instead of the embedded S3 server")] = False,
    directory: Annotated[
        Path | None,
        typer.Option("--directory", help="an empty or new directory for all files; by default a temporary one"),
    ] = None,
) -> None:
    """Demonstrate a run with a crash, and compare it with DuckDB.  Flights arrive in S3 meanwhile."""
    from slackwater.plugins.demo.scenario import run_demo

    if not run_demo(Output(), local, directory):
        sys.exit(1)
