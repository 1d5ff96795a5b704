"""`slackwater ui`: the web page of a root, served until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import webbrowser
from pathlib import Path

from actors.telemetry.logging import configure_default
from slackwater.reading.store import Store
from slackwater.ui.gate import AccessToken
from slackwater.ui.page_server import PageServer
from state.clock import SystemClock

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_EVERY_ADDRESS = ("0.0.0.0", "::")


def serve_page(store: Store, *, host: str, port: int, token_file: Path | None, browser: bool) -> None:
    """Serves the page, says where in one line, and returns after SIGINT or SIGTERM.

    Args:
        store: of the root.
        host: the address to listen on.
        port: 0 for any that is free.
        token_file: has the token, or None.
        browser: whether to open the page.

    Raises:
        UsageError: there is no token in the file, or the port or host cannot be listened on.
    """
    configure_default()
    token = AccessToken.chosen(host, token_file, os.environ)
    asyncio.run(
        _serve(PageServer(store, SystemClock(), host=host, port=port, token=token), store, host, token, browser)
    )


async def _serve(server: PageServer, store: Store, host: str, token: AccessToken | None, browser: bool) -> None:
    ended = asyncio.Event()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    port = await server.start()
    try:
        page = f"http://{_called(host)}:{port}/"
        # Only a token that nobody else knows is told; the others would be in more places than they must.
        url = f"{page}#token={token.text}" if token is not None and token.is_new else page
        asks = " (asks for the token)" if token is not None and not token.is_new else ""
        sys.stdout.write(f"{url} shows {store.root}{asks}; Ctrl-C ends it\n")
        sys.stdout.flush()
        if browser:
            webbrowser.open(page)
        await ended.wait()
    finally:
        await server.close()


def _called(host: str) -> str:
    """How a browser calls it."""
    name = socket.gethostname() if host in _EVERY_ADDRESS else host
    return f"[{name}]" if ":" in name else name
