"""The command `slackwater`: what runs, explains, checks and keeps a root; the other commands are added to it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.commands.doctor import diagnosis
from slackwater.cli.commands.observing import observing
from slackwater.cli.commands.reading import reading
from slackwater.cli.commands.steering import steering
from slackwater.cli.options import (
    AtEpoch,
    Debug,
    Json,
    LogJson,
    LogLevel,
    Root,
    StorageOptions,
    opened_store,
    storage_options,
)
from slackwater.terminal.edge import reports_errors
from slackwater.terminal.output import Output

app = typer.Typer(
    name="slackwater",
    help="Keeps SQL views up to date over the files that arrive in an object store.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(observing)
app.add_typer(reading)
app.add_typer(steering)
app.add_typer(diagnosis)

Target = Annotated[str, typer.Argument(metavar="APP:PIPELINE", help="e.g. app.py:pipeline or package.module:pipeline")]
Takeover = Annotated[bool, typer.Option("--takeover", help="take the root over from a living process")]


class Until(StrEnum):
    """When `run` ends by itself."""

    CAUGHT_UP = "caught_up"


class Engine(StrEnum):
    """What `verify` computes views with."""

    AUTO = "auto"
    DUCKDB = "duckdb"
    SPARK = "spark"


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script: parses `arguments` (by default the process's), runs the command, and exits."""
    app(args=list(arguments) if arguments is not None else None, prog_name="slackwater")


def _print_version(wanted: bool) -> None:
    if wanted:
        from slackwater import __version__

        sys.stdout.write(f"slackwater {__version__}\n")
        raise typer.Exit


@app.callback()
def _slackwater(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Keeps SQL views up to date over the files that arrive in an object store."""


@app.command()
@reports_errors
def run(
    target: Target,
    until: Annotated[
        Until | None,
        typer.Option("--until", help="end when everything that was listed is committed; by default run for ever"),
    ] = None,
    takeover: Takeover = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="only say what would be read, what it costs, and what would be refused")
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
        bool, typer.Option("--json", help="events, one JSON document a line; the last is the report")
    ] = False,
    log_level: Annotated[
        str | None,
        typer.Option("--log-level", help="debug, info, warning or error; by default info, with a live display warning"),
    ] = None,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """Run a pipeline.  Ctrl-C ends it after a last epoch; a new start goes on where it stopped."""
    from actors.telemetry.logging import configure
    from slackwater.cli.commands.dry_run import parsed_prices, print_dry_run
    from slackwater.cli.display.session import has_display, print_report, show_run
    from slackwater.cli.target import load_pipeline

    output = Output(json)
    configure(log_level or ("warning" if has_display(output) else "info"), log_json)
    prices = parsed_prices(list_price, get_price, is_dry=dry_run)
    if dry_run:
        if print_dry_run(load_pipeline(target), prices, output).is_refused:
            sys.exit(1)
        return
    report = show_run(load_pipeline(target), until.value if until else None, takeover, output)
    if not json:
        print_report(report, output)


@app.command()
@reports_errors
def explain(
    target: Annotated[str, typer.Argument(metavar="APP:PIPELINE|ROOT", help="a pipeline, or where one has run")],
    option: StorageOptions = None,
    json: Json = False,
    log_level: LogLevel = "warning",
    debug: Debug = False,
) -> None:
    """The class of each view: how it is kept up to date, or the operator that prevents it."""
    from actors.telemetry.logging import configure
    from slackwater.cli.commands.explain import print_catalog, print_explanations
    from slackwater.cli.target import load_pipeline

    configure(log_level)
    if "://" in target or Path(target).is_dir():
        print_catalog(opened_store(target, option), Output(json))
    else:
        print_explanations(load_pipeline(target), Output(json))


@app.command()
@reports_errors
def vacuum(
    root: Root,
    keep_s: Annotated[
        float | None,
        typer.Option("--keep-s", min=0, help="every epoch of the last so many seconds stays; by default 3,600"),
    ] = None,
    keep_epochs: Annotated[
        int | None,
        typer.Option("--keep-epochs", min=1, help="and the last so many, whatever their age; by default 100"),
    ] = None,
    takeover: Takeover = False,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Let go of older epochs and of the files that only they use.  A tagged or pinned epoch stays.

    A running pipeline does this by itself, as its settings say, and at once when it is asked; what is to be kept can be
    said for a root that nobody runs on.
    """
    options = storage_options(option)
    from slackwater.cli.commands.upkeep import vacuum_root
    from state.ownership.command import VacuumCommand

    command = VacuumCommand(keep_s=keep_s, keep_epochs=keep_epochs)
    vacuum_root(root, options, command, Output(json), takeover=takeover)


@app.command()
@reports_errors
def tag(
    root: Root,
    name: Annotated[str | None, typer.Argument(help="a letter, then letters, digits, '.', '_', '-'")] = None,
    epoch: AtEpoch = None,
    delete: Annotated[bool, typer.Option("--delete", help="take the name away")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="print all tags; so does no name")] = False,
    takeover: Takeover = False,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Give an epoch a name, by which it is kept and read.  A name that is there already moves."""
    options = storage_options(option)
    from slackwater.cli.commands import upkeep
    from state.errors import UsageError

    if name is None or list_all:
        if name is not None or epoch is not None or delete:
            raise UsageError("--list takes no name, and nothing else: give one or the other")
        upkeep.list_tags(root, options, Output(json))
    elif delete:
        if epoch is not None:
            raise UsageError("--delete takes no --epoch: a name is taken away from whatever epoch it has")
        upkeep.remove_tag(root, options, name, Output(json), takeover=takeover)
    else:
        upkeep.set_tag(root, options, name, epoch, Output(json), takeover=takeover)


@app.command()
@reports_errors
def verify(
    root: Root,
    epoch: AtEpoch = None,
    target: Annotated[
        str | None,
        typer.Option("--app", metavar="APP:PIPELINE", help="the pipeline, for views that are functions"),
    ] = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="auto: DuckDB, and Spark where DuckDB differs")
    ] = Engine.AUTO,
    option: StorageOptions = None,
    json: Json = False,
    log_level: LogLevel = "warning",
    debug: Debug = False,
) -> None:
    """Compute every view again from the files that the ledger names, and compare.  Exit code 0: all are equal."""
    from actors.telemetry.logging import configure
    from slackwater.cli.commands.verify import print_verification
    from slackwater.cli.target import load_pipeline

    configure(log_level)
    store = opened_store(root, option)
    pipeline = load_pipeline(target) if target else None
    if not print_verification(store, epoch, pipeline, engine.value, Output(json)).all_equal:
        sys.exit(1)


@app.command()
@reports_errors
def demo(
    local: Annotated[bool, typer.Option("--local", help="a directory instead of the embedded S3 server")] = False,
    directory: Annotated[
        Path | None,
        typer.Option("--directory", help="an empty or new directory to keep everything in; by default a temporary one"),
    ] = None,
    debug: Debug = False,
) -> None:
    """Flights into S3, through a crash, compared with DuckDB."""
    from slackwater.demo.scenario import run_demo

    if not run_demo(local=local, directory=directory):
        sys.exit(1)
