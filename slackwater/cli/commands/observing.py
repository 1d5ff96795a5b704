"""The commands that watch a pipeline, from any machine, by its root alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.options import AtEpoch, Debug, Json, Root, StorageOptions, opened_store, storage_options
from slackwater.terminal.edge import reports_errors
from slackwater.terminal.output import Output
from state.errors import UsageError

_INTERVAL_S = 2.0

observing = typer.Typer()


@observing.command()
@reports_errors
def status(
    root: Root,
    watch: Annotated[bool, typer.Option("--watch", help="go on, and show what changes, until Ctrl-C")] = False,
    interval_s: Annotated[
        float | None,
        typer.Option("--interval-s", min=0.1, help="seconds between two looks of --watch; by default 2"),
    ] = None,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Who runs, how far the sources are, where the views are, and what is quarantined."""
    options = storage_options(option)
    if watch:
        from slackwater.cli.display.status_watch import watch_status

        watch_status(root, options, interval_s or _INTERVAL_S, Output(json))
        return
    if interval_s is not None:
        raise UsageError("--interval-s is the pace of --watch: give both, or neither")
    from slackwater.cli.display.status import print_status

    print_status(opened_store(root, option), Output(json))


@observing.command()
@reports_errors
def trace(
    root: Root, epoch: AtEpoch = None, option: StorageOptions = None, json: Json = False, debug: Debug = False
) -> None:
    """Where the time of an epoch went: its phases, and the actors, views and steps that took longest in each."""
    from slackwater.cli.display.trace import print_trace

    print_trace(opened_store(root, option).trace(epoch), Output(json))


@observing.command()
@reports_errors
def ui(
    root: Root,
    host: Annotated[
        str, typer.Option("--host", help="the address to listen on; others than 127.0.0.1 take a token")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free")] = 8270,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            help="a file with the token that the page asks for; otherwise that of SLACKWATER_UI_TOKEN, or a new one",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="open the page in a browser")] = False,
    option: StorageOptions = None,
    debug: Debug = False,
) -> None:
    """Serve a web page about a root, for reading: who runs, epochs, files, views, and what is quarantined.

    Ctrl-C ends it.  Nobody needs to run on the root.
    """
    store = opened_store(root, option)
    from slackwater.cli.commands.ui import serve_page

    serve_page(store, host=host, port=port, token_file=token_file, browser=browser)
