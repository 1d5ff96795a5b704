"""`slackwater serve`: answers SQL clients about a root until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from actors.telemetry.logging import configure_default
from slackwater.cli.commands.until_signal import serve_until_signal
from slackwater.cli.terminal.output import Output
from slackwater.plugins.serve.front.serving_limits import ServingLimits
from slackwater.plugins.serve.front.worker_pool import WorkerPool, WorkerSettings
from slackwater.plugins.serve.log_in.authentication import VARIABLE, Password
from slackwater.plugins.serve.log_in.tls import tls_context
from slackwater.plugins.serve.sql_server import SqlServer
from slackwater.plugins.ui.gate import is_loopback
from state.errors import UsageError
from state.location import Location


def serve_sql(
    location: Location,
    *,
    host: str,
    port: int,
    certificate: Path | None,
    key: Path | None,
    max_memory_bytes: int,
    workers: int,
    limits: ServingLimits,
) -> None:
    """Serves the root, prints its address, and returns after SIGINT or SIGTERM.

    Args:
        host: the address to listen on.
        port: 0 for any free port.
        certificate: the certificate of TLS; None for none.
        max_memory_bytes: the largest memory of all statements.
        workers: the number of worker processes, which share it.

    Raises:
        UsageError: the host needs a password, a file of TLS cannot be used, or the server cannot listen.
        EpochNotFoundError: no epoch was committed yet.
    """
    configure_default()
    password = Password.from_environment(os.environ)
    if password is None and not is_loopback(host):
        raise UsageError(
            f"--host {host} can be reached from other machines, and then the environment variable {VARIABLE} must have "
            "a password; set it, or leave --host out"
        )
    tls = tls_context(certificate, key)
    settings = WorkerSettings(
        location.url,
        location.storage_options,
        max_memory_bytes // workers,
        limits.max_rows,
        limits.max_answer_bytes,
    )

    def announce(taken: int) -> None:
        needs = " and ".join(["the password"] * (password is not None) + ["TLS"] * (tls is not None))
        place = f"[{host}]" if ":" in host else host
        address = f"postgresql://slackwater@{place}:{taken}/slackwater"
        Output().text(f"{address} serves {location.url}{f' (needs {needs})' if needs else ''}; Ctrl-C ends it")

    server = SqlServer(WorkerPool(settings, workers), host=host, port=port, password=password, tls=tls, limits=limits)
    asyncio.run(serve_until_signal(server, announce))
