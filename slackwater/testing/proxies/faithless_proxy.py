"""A proxy that behaves like a store that accepts conditions and ranges, and ignores them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

import obstore
from obstore.store import S3Store

from slackwater.testing.proxies.request_log import RequestLog
from slackwater.testing.proxies.reverse_proxy import Exchange

_QUOTED_ETAG = re.compile(rb"<ETag>(?:&#34;|&quot;|\")?([^<&\"]*)(?:&#34;|&quot;|\")?</ETag>")


class FaithlessProxy(RequestLog):
    """An endpoint in front of an S3 server that ignores headers.  Made by `S3Server.faithless_proxy`.

    The client has signed its headers, so the proxy cannot remove one.  Where the server refuses a request because
    of an ignored header, the proxy sends the request again without the header, with its own signature.

    Args:
        host: of the server behind.
        port: of the server behind.
        options_for: the storage options for an endpoint.
        ignores: the headers that have no effect: `If-None-Match`, `If-Match`, `Range`.
        strips_quotes: whether ETags come without quotes, as rclone sends them.
        hides: whether listings lack every object.
    """

    def __init__(
        self,
        host: str,
        port: int,
        options_for: Callable[[str], dict[str, str]],
        ignores: Collection[str] = (),
        *,
        strips_quotes: bool = False,
        hides: bool = False,
    ) -> None:
        self._ignores, self._strips_quotes, self._hides = frozenset(ignores), strips_quotes, hides
        self._behind = options_for(f"http://{host}:{port}")
        super().__init__(host, port, options_for)

    def handle(self, exchange: Exchange) -> None:
        request = exchange.apply()
        self._note(request)
        is_conditional = any(exchange.headers.get(name) for name in self._ignores & {"If-None-Match", "If-Match"})
        if request.method == "PUT" and request.status in (404, 409, 412) and is_conditional:
            put = obstore.put(self._store(request.bucket), request.key, exchange.sent_body)  # noqa: TID251 - the fault
            exchange.replace(200, {"ETag": put["e_tag"] or ""}, b"")
        elif request.method == "GET" and request.status == 206 and "Range" in self._ignores:
            found = obstore.get(self._store(request.bucket), request.key)  # noqa: TID251 - of a bucket
            modified = found.meta["last_modified"].strftime("%a, %d %b %Y %H:%M:%S GMT")
            head = {"ETag": found.meta["e_tag"] or "", "Last-Modified": modified}
            exchange.replace(200, head, bytes(found.bytes()))
        elif request.is_list and self._hides:
            exchange.edit(content=lambda text: re.sub(rb"<Contents>.*</Contents>", b"", text, flags=re.DOTALL))
        if self._strips_quotes:
            exchange.edit(
                head=lambda text: re.sub(rb'(?im)^(ETag: )"([^"\r]*)"', rb"\1\2", text),
                content=lambda text: _QUOTED_ETAG.sub(rb"<ETag>\1</ETag>", text) if request.is_list else text,
            )
        exchange.answer()

    def _store(self, bucket: str) -> S3Store:
        options: dict[str, Any] = {key: value for key, value in self._behind.items() if key != "allow_http"}
        return S3Store(bucket, client_options={"allow_http": True}, **options)
