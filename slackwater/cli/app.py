"""The commands of `slackwater`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer

from slackwater.cli.correcting import ask_owner, correcting
from slackwater.cli.edge import reports_errors
from slackwater.cli.options import (
    AtEpoch,
    Debug,
    Json,
    LogJson,
    LogLevel,
    Root,
    Source,
    StorageOptions,
    Timeout,
    opened_store,
    storage_options,
)
from slackwater.cli.output import Output
from slackwater.cli.reading import reading

app = typer.Typer(
    name="slackwater",
    help="Keeps SQL views up to date over the files that arrive in an object store.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(reading)
app.add_typer(correcting)

Target = Annotated[str, typer.Argument(metavar="APP:PIPELINE", help="e.g. app.py:pipeline or package.module:pipeline")]
Takeover = Annotated[bool, typer.Option("--takeover", help="take the root over from a living process")]


class Until(str, Enum):
    """When `run` ends by itself."""

    CAUGHT_UP = "caught_up"


class FileStatus(str, Enum):
    """What the ledger says of a file."""

    WAITING = "waiting"
    READING = "reading"
    DONE = "done"
    QUARANTINED = "quarantined"
    VANISHED = "vanished"
    REPLACED = "replaced"
    FORGOTTEN = "forgotten"


class Off(str, Enum):
    """How `throttle` lifts its limits."""

    OFF = "off"


class Engine(str, Enum):
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
        Optional[Until],  # noqa: UP045
        typer.Option("--until", help="end when everything that was listed is committed; by default run for ever"),
    ] = None,
    takeover: Takeover = False,
    json: Json = False,
    log_level: LogLevel = "info",
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """Run a pipeline.  Ctrl-C ends it after a last epoch; a new start goes on where it stopped."""
    from actors.logging import configure
    from slackwater.cli.session import print_report, run_in_foreground
    from slackwater.cli.target import load_pipeline

    configure(log_level, log_json)
    report = run_in_foreground(load_pipeline(target), until.value if until else None, takeover)
    print_report(report, Output(json))


@app.command()
@reports_errors
def status(root: Root, option: StorageOptions = None, json: Json = False, debug: Debug = False) -> None:
    """Who runs, how far the sources are, where the views are, and what is quarantined."""
    from slackwater.cli.status import print_status

    print_status(opened_store(root, option), Output(json))


@app.command()
@reports_errors
def epochs(
    root: Root,
    limit: Annotated[int, typer.Option("--limit", min=1, help="the last so many")] = 1_000,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The retained epochs: when, how many files and rows, and the seconds of each phase."""
    table = opened_store(root, option).epochs()
    Output(json).table(table.slice(max(0, table.num_rows - limit)))


@app.command()
@reports_errors
def files(
    root: Root,
    source: Source = None,
    status: Annotated[
        Optional[FileStatus],  # noqa: UP045
        typer.Option("--status", help="only files in this status"),
    ] = None,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The ledger: one row for each version of each file."""
    Output(json).table(opened_store(root, option).files(source, status=status.value if status else None))


@app.command()
@reports_errors
def why(
    root: Root,
    path: Annotated[str, typer.Argument(help="an object: its whole URL or path")],
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """One object's story: why its rows are in the views, or why not."""
    output = Output(json)
    story = opened_store(root, option).why(path)
    if json:
        output.document(asdict(story))
    else:
        output.text(story.text)


@app.command()
@reports_errors
def show(
    root: Root,
    view: Annotated[str, typer.Argument(help="the view's name")],
    limit: Annotated[int, typer.Option("--limit", min=0, help="rows")] = 20,
    epoch: AtEpoch = None,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The rows of a view at an epoch."""
    output = Output(json)
    snapshot = opened_store(root, option).snapshot(epoch)
    rows = snapshot.view(view).to_arrow()
    output.table(rows.slice(0, limit), title=f"{view} at epoch {snapshot.epoch}")
    if rows.num_rows > limit:
        output.text(f"{limit:,} of {rows.num_rows:,} rows; --limit shows more")


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
    from actors.logging import configure
    from slackwater.cli.explain import print_catalog, print_explanations
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
        Optional[float],  # noqa: UP045
        typer.Option("--keep-s", min=0, help="every epoch of the last so many seconds stays; by default 3,600"),
    ] = None,
    keep_epochs: Annotated[
        Optional[int],  # noqa: UP045
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
    from slackwater.cli.upkeep import vacuum_root
    from state.command import VacuumCommand

    command = VacuumCommand(keep_s=keep_s, keep_epochs=keep_epochs)
    vacuum_root(root, options, command, Output(json), takeover=takeover)


@app.command()
@reports_errors
def tag(
    root: Root,
    name: Annotated[Optional[str], typer.Argument(help="a letter, then letters, digits, '.', '_', '-'")] = None,  # noqa: UP045
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
    from slackwater.cli import upkeep
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
        Optional[str],  # noqa: UP045
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
    from actors.logging import configure
    from slackwater.cli.target import load_pipeline
    from slackwater.cli.verify import print_verification

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
        Optional[Path],  # noqa: UP045
        typer.Option("--directory", help="an empty or new directory to keep everything in; by default a temporary one"),
    ] = None,
    debug: Debug = False,
) -> None:
    """Flights into S3, through a crash, compared with DuckDB."""
    from slackwater.demo.scenario import run_demo

    if not run_demo(local=local, directory=directory):
        sys.exit(1)


@app.command()
@reports_errors
def pause(
    root: Root, timeout: Timeout = 60, option: StorageOptions = None, json: Json = False, debug: Debug = False
) -> None:
    """Have a running pipeline list and read nothing more, until `resume`."""
    from state.command import PauseCommand

    ask_owner(root, option, PauseCommand(), timeout, json)


@app.command()
@reports_errors
def resume(
    root: Root, timeout: Timeout = 60, option: StorageOptions = None, json: Json = False, debug: Debug = False
) -> None:
    """Take a `pause` back."""
    from state.command import ResumeCommand

    ask_owner(root, option, ResumeCommand(), timeout, json)


@app.command()
@reports_errors
def stop(
    root: Root, timeout: Timeout = 60, option: StorageOptions = None, json: Json = False, debug: Debug = False
) -> None:
    """End a running pipeline after a last epoch."""
    from state.command import StopCommand

    ask_owner(root, option, StopCommand(), timeout, json)


@app.command()
@reports_errors
def throttle(
    root: Root,
    off: Annotated[Optional[Off], typer.Argument(help="lift every limit")] = None,  # noqa: UP045
    files_per_second: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option("--files-per-second", help="open no more files than this each second"),
    ] = None,
    bytes_per_second: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option("--bytes-per-second", help="read no more bytes than this each second"),
    ] = None,
    rows_per_second: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option("--rows-per-second", help="emit no more rows than this each second"),
    ] = None,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Limit how fast a running pipeline reads.  A new limit replaces those before."""
    from state.command import ThrottleCommand
    from state.errors import UsageError

    rates = {
        "files_per_second": files_per_second,
        "bytes_per_second": bytes_per_second,
        "rows_per_second": rows_per_second,
    }
    if (off is None) == (set(rates.values()) == {None}):
        raise UsageError("give --files-per-second, --bytes-per-second or --rows-per-second, one or more; or else `off`")
    command = ThrottleCommand(**rates)
    ask_owner(root, option, command, timeout, json)


@app.command()
@reports_errors
def rescale(
    root: Root,
    fetchers: Annotated[str, typer.Argument(metavar="N|N-M", help="how many; or the fewest and the most")],
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Take a running pipeline to another number of fetch actors; with `1-8` it chooses by how much there is to do."""
    from slackwater.cli.commands import parsed_fetchers
    from state.command import RescaleCommand

    fewest, most = parsed_fetchers(fetchers)
    ask_owner(root, option, RescaleCommand(fewest=fewest, most=most), timeout, json)


@app.command()
@reports_errors
def retry(
    root: Root,
    source: Source = None,
    file: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--file", metavar="GLOB", help="only these: a whole URL or path, or a glob below a source"),
    ] = None,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Read quarantined files again, each from the row where it ended.

    Single bad records, which `quarantine` shows, are not retried: the views hold the rows around them.  Export them,
    mend them, and put them as a new file.  A file that is mended in place is read again as a whole if its source has
    on_change="append": leave the rows out that were read.
    """
    from state.command import RetryCommand

    ask_owner(root, option, RetryCommand(source=source, file=file), timeout, json)


@app.command()
@reports_errors
def quarantine(
    root: Root,
    source: Annotated[Optional[str], typer.Option("--source", help="only records of this source")] = None,  # noqa: UP045
    export: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--export", help="write all of them into a new file: .parquet, .csv, or .json with one a line"),
    ] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="forget what they were, after the export or with --yes")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="clear without an export")] = False,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The bad records that were kept: where in which file, what they are, and why they do not fit.

    Their places in the files, and their number in the ledger, stay when they are cleared.  Poison messages of a queue
    of events are among them, without a row.
    """
    options = storage_options(option)
    from slackwater.cli.quarantine import export_quarantine, print_quarantine
    from state.errors import UsageError

    if clear and export is None and not yes:
        raise UsageError("--clear forgets what the bad records were: give --export FILE as well, or --yes")
    if export is None and not clear:
        print_quarantine(root, options, source, Output(json))
    else:
        export_quarantine(root, options, source, Output(json), file=export, clear=clear, timeout_s=timeout)
