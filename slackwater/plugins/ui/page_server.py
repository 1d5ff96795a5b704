"""Server of the page: its routes, start and end."""

from __future__ import annotations

import asyncio
import hashlib
import json
import mimetypes
import socket
from bisect import bisect_left
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

import structlog
from aiohttp import web

from actors.telemetry.logging import redact
from slackwater.plugins.ui.gate import API, AccessToken, Gate, refusal
from slackwater.plugins.ui.root_documents import Document, RootDocuments
from slackwater.plugins.ui.shared_answer import SharedAnswer
from slackwater.reading.store import Store
from state.clock import Clock
from state.errors import NotFoundError, SlackwaterError, UsageError

Value = TypeVar("Value")

_THREADS = 4
_MOST_ROWS = 500
_LONGEST_TEXT = 4096
_log = structlog.get_logger(actor="ui")


class PageServer:
    """Serves the page of a root until it is closed.

    Args:
        store: the store of the root.
        clock: the clock of this machine.
        host: the name or address to listen on.
        port: the port to listen on; 0 for any free port.
        token: the required token; None for a host that only this machine can reach.
    """

    def __init__(self, store: Store, clock: Clock, *, host: str, port: int, token: AccessToken | None) -> None:
        self._host, self._port = host, port
        self._documents = RootDocuments(store, clock)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ui")
        read = self._documents
        self._now = SharedAnswer(partial(self._in_thread, read.now), clock)
        self._epochs = SharedAnswer(partial(self._in_thread, read.epochs, None, _MOST_ROWS), clock)
        self._epoch_numbers = SharedAnswer(partial(self._in_thread, read.epoch_numbers), clock)
        self._sources = SharedAnswer(partial(self._in_thread, read.sources), clock)
        self._views = SharedAnswer(partial(self._in_thread, read.views), clock)
        self._runner = web.AppRunner(self._application(Gate(token)), access_log=None, shutdown_timeout=1.0)

    async def start(self) -> int:
        """Begins to listen, and returns the port.

        Raises:
            UsageError: the port is taken, or the host is not one of this machine.
        """
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port, reuse_address=True).start()
        except OSError as error:
            await self.close()
            raise UsageError(_not_listening(self._host, self._port, error)) from None
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        """Ends all answers; reads in progress end by themselves."""
        await self._runner.cleanup()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _application(self, gate: Gate) -> web.Application:
        application = web.Application(middlewares=[gate.middleware, _reported])
        application.on_response_prepare.append(gate.seal)
        application.router.add_get("/", _asset("index.html"))
        for asset in files("slackwater.plugins.ui").joinpath("assets").iterdir():
            application.router.add_get(f"/assets/{asset.name}", _asset(asset.name))
        routes = {
            "now": self._get_now,
            "epochs": self._get_epochs,
            "sources": self._get_sources,
            "views": self._get_views,
            "sample": self._get_sample,
            "files": self._get_files,
            "why": self._get_why,
            "quarantine": self._get_quarantine,
        }
        for name, handler in routes.items():
            application.router.add_get(API + name, handler)
        return application

    async def _get_now(self, request: web.Request) -> web.Response:
        return _answer(request, await self._now.get())

    async def _get_epochs(self, request: web.Request) -> web.Response:
        """The last epochs, or the epochs before or after a given one."""
        limit = _limit(request)
        before, after = _epoch(request, "before"), _epoch(request, "after")
        if before is None:
            epochs = await self._epochs.get()
        else:
            epochs = await self._in_thread(self._documents.epochs, before, limit)
        shown = [row for row in epochs[-limit:] if after is None or int(row["epoch"]) > after]
        first = int(shown[0]["epoch"]) if shown else 0
        numbers = await self._epoch_numbers.get()
        return _answer(request, {"epochs": shown, "earlier": bisect_left(numbers, first)})

    async def _get_sources(self, request: web.Request) -> web.Response:
        return _answer(request, await self._sources.get())

    async def _get_views(self, request: web.Request) -> web.Response:
        return _answer(request, await self._views.get())

    async def _get_sample(self, request: web.Request) -> web.Response:
        view = _text(request, "view") or ""
        return _answer(request, await self._in_thread(self._documents.sample, view, _limit(request, 20)))

    async def _get_files(self, request: web.Request) -> web.Response:
        source, status, after = (_text(request, name) for name in ("source", "status", "after"))
        read = partial(self._documents.files, _text(request, "text") or "", source, status, after, _limit(request))
        return _answer(request, await self._in_thread(read))

    async def _get_why(self, request: web.Request) -> web.Response:
        path = _text(request, "path")
        if path is None:
            raise UsageError("path= is missing: give an object, by its URL or by its path below a source")
        return _answer(request, await self._in_thread(self._documents.file_history, path))

    async def _get_quarantine(self, request: web.Request) -> web.Response:
        source, after = _text(request, "source"), _text(request, "after")
        return _answer(request, await self._in_thread(self._documents.quarantine, source, after, _limit(request, 50)))

    async def _in_thread(self, read: Callable[..., Value], *arguments: Any) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._threads, read, *arguments)


@web.middleware
async def _reported(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
    """Turns an error of a read into an answer: the page shows it, and keeps its present content."""
    try:
        response: web.StreamResponse = await handler(request)
        return response
    except SlackwaterError as error:
        status = 400 if isinstance(error, UsageError) else 404 if isinstance(error, NotFoundError) else 503
        return refusal(status, redact(str(error)))
    except (web.HTTPException, asyncio.CancelledError):
        raise
    except Exception as error:
        _log.exception("answer failed", path=request.path)
        return refusal(500, f"{type(error).__name__}: {redact(str(error))} (an unexpected error: please report it)")


def _answer(request: web.Request, document: Document) -> web.Response:
    """The document, or 304 if the client has it already."""
    body = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    if request.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers={"ETag": etag})
    response = web.Response(body=body, content_type="application/json", charset="utf-8", headers={"ETag": etag})
    response.enable_compression()
    return response


def _asset(name: str) -> Callable[[web.Request], Any]:
    body = files("slackwater.plugins.ui").joinpath("assets").joinpath(name).read_bytes()
    content_type = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "text/plain"
    charset = "utf-8" if content_type.startswith(("text/", "image/svg")) else None

    async def get(_request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=content_type, charset=charset)

    return get


def _text(request: web.Request, name: str) -> str | None:
    text = request.query.get(name)
    if text is not None and len(text) > _LONGEST_TEXT:
        raise UsageError(f"{name}= has {len(text):,} characters: give at most {_LONGEST_TEXT:,}")
    return text or None


def _limit(request: web.Request, default: int = 100) -> int:
    text = request.query.get("limit", str(default))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MOST_ROWS:
        raise UsageError(f"limit={text[:20]!r}: give a number from 1 to {_MOST_ROWS}")
    return int(text)


def _epoch(request: web.Request, name: str) -> int | None:
    text = request.query.get(name)
    if text is not None and not (text.isascii() and text.isdigit() and len(text) < 20):
        raise UsageError(f"{name}={text[:20]!r}: give an epoch of the previous page")
    return None if text is None else int(text)


def _not_listening(host: str, port: int, error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"--host {host} is not an address of this machine: give 127.0.0.1, or 0.0.0.0 for all its addresses"
    reason = (error.strerror or str(error)).lower()
    return f"{host} port {port} cannot be listened on: {reason}; give another --port, or 0 for any free one"
