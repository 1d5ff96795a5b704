"""The CLI commands that observe a pipeline from any machine, through its root: status, trace and ui."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.application import command
from slackwater.cli.options import AtEpoch, Json, Root, StorageOptions, Wide, opened_store, storage_options
from slackwater.cli.terminal.output import Output
from state.errors import UsageError

_INTERVAL_S = 2.0


@command()
def status(
    root: Root,
    watch: Annotated[bool, typer.Option("--watch", help="show changes until Ctrl-C")] = False,
    interval_s: Annotated[
        float | None,
        typer.Option("--interval-s", min=0.1, help="seconds between two reads of --watch; by default 2"),
    ] = None,
    wide: Wide = False,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Print the owner, sources, views and quarantine of a root."""
    options = storage_options(option)
    if watch:
        from slackwater.cli.display.status_watch import watch_status

        watch_status(root, options, interval_s or _INTERVAL_S, Output(json))
        return
    if interval_s is not None:
        raise UsageError("--interval-s needs --watch: add it, or leave out --interval-s")
    from slackwater.cli.display.status import print_status

    print_status(opened_store(root, option), Output(json, wide))


@command()
def trace(root: Root, epoch: AtEpoch = None, option: StorageOptions = None, json: Json = False) -> None:
    """Print the time spent in an epoch, by phase.  Each phase has its slowest actors, views and steps."""
    from slackwater.cli.display.trace import print_trace

    print_trace(opened_store(root, option).trace(epoch), Output(json))


@command()
def ui(
    root: Root,
    host: Annotated[
        str, typer.Option("--host", help="the address to listen on; any other than 127.0.0.1 needs a token")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any free port")] = 8270,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            help="a file with the access token; by default SLACKWATER_UI_TOKEN, or a new token",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="open the page in a browser")] = False,
    option: StorageOptions = None,
) -> None:
    """Serve a read-only web page about a root.  Ctrl-C ends it.

    It shows the run, epochs, files, views and quarantine.  The pipeline need not run.
    """
    store = opened_store(root, option)
    from slackwater.cli.commands.ui import serve_page

    serve_page(store, host=host, port=port, token_file=token_file, browser=browser)


@command()
def serve(
    root: Root,
    host: Annotated[
        str, typer.Option("--host", help="the address to listen on; any other than 127.0.0.1 needs a password")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any free port")] = 5433,
    tls_certificate: Annotated[
        Path | None, typer.Option("--tls-certificate", help="a certificate in PEM: clients must use TLS")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="its private key in PEM")] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.001, help="seconds that a statement computes at most")
    ] = 300.0,
    max_memory_gib: Annotated[
        float | None,
        typer.Option(
            "--max-memory-gib", min=0.01, help="memory of all statements; by default 4, or half of the machine's"
        ),
    ] = None,
    max_connections: Annotated[int, typer.Option("--max-connections", min=1, help="connections at one time")] = 100,
    max_rows: Annotated[
        int | None, typer.Option("--max-rows", min=1, help="rows of one answer; by default no limit")
    ] = None,
    max_answer_mib: Annotated[
        int | None, typer.Option("--max-answer-mib", min=1, help="size of one answer; by default no limit")
    ] = None,
    idle_timeout: Annotated[
        float, typer.Option("--idle-timeout", min=1, help="seconds without a statement after which a session ends")
    ] = 86_400.0,
    workers: Annotated[int, typer.Option("--workers", min=1, help="worker processes; they share the memory")] = min(
        4, os.cpu_count() or 1
    ),
    option: StorageOptions = None,
) -> None:
    """Answer SQL clients about a root, by PostgreSQL's protocol.  Ctrl-C ends it.

    psql, dashboards and drivers read views of the latest epoch.  Nothing is written.  The pipeline need not run.

    The environment variable SLACKWATER_PASSWORD has the password, if there is one.
    """
    from slackwater.cli.commands.serve import serve_sql
    from slackwater.plugins.serve.front.serving_limits import ServingLimits
    from slackwater.reading.snapshot_sql import DEFAULT_MEMORY_BYTES
    from state.location import Location

    serve_sql(
        Location(root, storage_options(option)),
        host=host,
        port=port,
        certificate=tls_certificate,
        key=tls_key,
        max_memory_bytes=DEFAULT_MEMORY_BYTES if max_memory_gib is None else int(max_memory_gib * (1 << 30)),
        workers=workers,
        limits=ServingLimits(
            timeout,
            max_connections,
            max_rows,
            max_answer_bytes=None if max_answer_mib is None else max_answer_mib << 20,
            idle_s=idle_timeout,
        ),
    )
