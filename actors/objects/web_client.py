"""Client of a web server: requests with retries, time-outs, and redirects that stay on known hosts.

The client of obstore follows redirects to any host, and so lets a server make its reader fetch from the reader's own
network, such as a cloud's metadata service.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
    ReadTimeoutError,
    SSLError,
)

from actors.file_errors import ObjectChanged, ObjectVanished, UnreadableFile
from actors.files import FileVersion
from actors.objects.ranges import Range
from actors.objects.store_errors import INVALID_NAME
from actors.objects.web_options import RedirectRefused, WebOptions, allowed_redirect
from state.clock import Clock, SystemClock
from state.errors import AccessDeniedError, StorageUnavailableError
from state.location import Location

_MOST_REDIRECTS = 10
_STEP_BYTES = 1 << 16
_TRANSIENT = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_NETWORK: tuple[tuple[type[HTTPError], str], ...] = (
    (NameResolutionError, "its host name is not known"),
    (NewConnectionError, "no connection could be made"),
    (ConnectTimeoutError, "it did not answer in time"),
    (ReadTimeoutError, "it did not answer in time"),
    (SSLError, "its certificate is not accepted"),
)


class WebClient:
    """Requests below one location.  Safe to use from many threads.

    Args:
        max_attempts: tries of one request before the server counts as unavailable.
        connections: connections that are kept open.

    Raises:
        SettingsError: a storage option is wrong.
    """

    def __init__(self, location: Location, *, max_attempts: int, connections: int, clock: Clock | None = None) -> None:
        self.location = location
        self._options = WebOptions.of(location)
        self._pool = _pool(location, self._options, max_attempts, connections)
        self._clock = clock or SystemClock()

    def get(self, file: FileVersion, wanted: Range) -> bytes:
        """A range of a version of a file; it may be shorter than wanted if the file is.

        Raises:
            ObjectVanished, ObjectChanged: the file does not exist any more, or was written since it was listed.
            UnreadableFile: its name is not valid, it is redirected to another host, or the server sends no ranges.
            AccessDeniedError, StorageUnavailableError: the server refuses the request, or does not answer.
        """
        if not {"", ".", ".."}.isdisjoint(file.path.split("/")):
            raise UnreadableFile(INVALID_NAME)
        place, (start, end) = f"{self.location}/{file.path}", wanted
        headers = {"If-Unmodified-Since": file.last_modified.strftime("%a, %d %b %Y %H:%M:%S GMT")}
        is_part = wanted != (0, file.size)
        if is_part:
            headers["Range"] = f"bytes={start}-{end - 1}"
        try:
            answer = self.request("GET", quote(file.path), headers)
        except RedirectRefused as refused:
            raise UnreadableFile(refused.reason) from None
        try:
            if answer.status == HTTPStatus.NOT_FOUND:
                raise ObjectVanished(f"{place} is no longer there")
            if answer.status in (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE):
                raise ObjectChanged(f"{place} has changed since it was listed")
            self.require(answer, place, HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT)
            written = _time(answer.headers.get("Last-Modified"))
            if written is not None and written > file.last_modified.timestamp():
                raise ObjectChanged(f"{place} has changed since it was listed")
            if is_part and answer.status == HTTPStatus.OK:
                raise UnreadableFile(
                    "the server sends no part of a file; raise RequestSettings(whole_object_bytes=...) above the size "
                    "of the file"
                )
            return self.content(answer, place, end - start)
        finally:
            answer.close()

    def request(self, method: str, path: str, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        """The answer to a request, without its content yet.

        Args:
            method: the method of HTTP.
            path: the path below the location, percent-encoded; empty for the location itself.
            headers: further headers.

        Raises:
            RedirectRefused: the server redirects to a host that is not allowed.
            StorageUnavailableError: the server does not answer.
        """
        url = f"{self.location.url}/{path}"
        for _ in range(_MOST_REDIRECTS):
            try:
                answer = self._pool.request(
                    method,
                    url,
                    headers={**self._pool.headers, **headers},
                    redirect=False,
                    preload_content=False,
                    decode_content=False,
                )
            except HTTPError as error:
                reason = self._unavailable(error)
            else:
                target = answer.get_redirect_location()
                if not target:
                    return answer
                answer.close()
                url = allowed_redirect(self.location, self._options, url, target)
                continue
            raise reason
        raise StorageUnavailableError(f"{self.location}: the server redirects without end; correct the URL")

    def content(self, answer: urllib3.BaseHTTPResponse, place: str, most_bytes: int) -> bytes:
        """The content of an answer, at most one byte more than `most_bytes`.

        Raises:
            StorageUnavailableError: the content broke off, or takes too long.
        """
        until_s = self._clock.monotonic() + self._options.request_s
        parts, left = [], most_bytes + 1
        try:
            while left and (part := answer.read1(min(left, _STEP_BYTES))):
                parts.append(part)
                left -= len(part)
                if self._clock.monotonic() > until_s:
                    raise StorageUnavailableError(f"{place}: the server is too slow; try again later")
        except HTTPError as error:
            reason = self._unavailable(error)
        else:
            return b"".join(parts)
        raise reason

    def require(self, answer: urllib3.BaseHTTPResponse, place: str, *allowed: HTTPStatus) -> None:
        """Refuses an answer of another status.

        Raises:
            AccessDeniedError, StorageUnavailableError: the server refuses the request, or cannot answer it now.
        """
        if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise AccessDeniedError(
                f"{place}: access is denied ({answer.status}); check the credentials and the permissions"
            )
        if answer.status not in allowed:
            raise StorageUnavailableError(f"{place}: the server answered {answer.status}; try again later")

    def _unavailable(self, error: HTTPError) -> StorageUnavailableError:
        cause = error.reason if isinstance(error, MaxRetryError) and error.reason is not None else error
        why = next((meaning for kind, meaning in _NETWORK if isinstance(cause, kind)), "the request failed")
        return StorageUnavailableError(
            f"{self.location}: the server cannot be reached: {why}; check the URL and the network"
        )


def _pool(location: Location, options: WebOptions, max_attempts: int, connections: int) -> urllib3.PoolManager:
    retries = urllib3.Retry(
        total=max_attempts - 1,
        allowed_methods=None,
        status_forcelist=_TRANSIENT,
        backoff_factor=0.1,
        backoff_max=5,
        raise_on_status=False,
        # A server could ask for a pause of days.
        respect_retry_after_header=False,
    )
    more: Any = {"cert_reqs": "CERT_NONE"} if options.takes_any_certificate else {}
    # The bytes of a file are those that are stored.
    headers = {"Accept-Encoding": "identity", **({"User-Agent": options.user_agent} if options.user_agent else {})}
    timeout = urllib3.Timeout(connect=options.connect_s, read=options.read_s)
    proxy = options.proxy_url
    if proxy is None and not proxy_bypass(urlsplit(location.url).hostname or ""):
        proxy = getproxies().get(location.scheme)
    if options.takes_any_certificate:
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if proxy is not None:
        return urllib3.ProxyManager(
            proxy, num_pools=4, maxsize=connections, headers=headers, retries=retries, timeout=timeout, **more
        )
    return urllib3.PoolManager(
        num_pools=4, maxsize=connections, headers=headers, retries=retries, timeout=timeout, **more
    )


def _time(text: str | None) -> float | None:
    """The seconds since 1970 of an HTTP date; None without one."""
    try:
        return None if text is None else parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None
