"""`slackwater ui`: serves the web page of a root until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import socket
import webbrowser
from pathlib import Path

from actors.telemetry.logging import configure_default
from slackwater.cli.commands.until_signal import serve_until_signal
from slackwater.cli.terminal.output import Output
from slackwater.plugins.ui.gate import AccessToken
from slackwater.plugins.ui.page_server import PageServer
from slackwater.reading.store import Store
from state.clock import SystemClock

_EVERY_ADDRESS = ("0.0.0.0", "::")


def serve_page(store: Store, *, host: str, port: int, token_file: Path | None, browser: bool) -> None:
    """Serves the page, prints its URL, and returns after SIGINT or SIGTERM.

    Args:
        host: the address to listen on.
        port: 0 for any free port.
        token_file: a file with the access token; None for another source of it.
        browser: open the page in a browser.

    Raises:
        UsageError: the file has no token, or the server cannot listen on the host and port.
    """
    configure_default()
    token = AccessToken.chosen(host, token_file, os.environ)

    def announce(port: int) -> None:
        page = f"http://{_browser_host(host)}:{port}/"
        # Only a new token is printed: an existing secret should not appear in more places.
        url = f"{page}#token={token.text}" if token is not None and token.is_new else page
        needs = " (needs the token)" if token is not None and not token.is_new else ""
        Output().text(f"{url} shows {store.root}{needs}; Ctrl-C ends it")
        if browser:
            webbrowser.open(page)

    asyncio.run(serve_until_signal(PageServer(store, SystemClock(), host=host, port=port, token=token), announce))


def _browser_host(host: str) -> str:
    name = socket.gethostname() if host in _EVERY_ADDRESS else host
    return f"[{name}]" if ":" in name else name
