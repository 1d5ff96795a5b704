"""Gate of the page: its access token, and the check of each request."""

from __future__ import annotations

import hmac
import ipaddress
import os
import string
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from state.errors import UsageError

VARIABLE = "SLACKWATER_UI_TOKEN"
_SHORTEST = 16
_ALLOWED = frozenset(string.ascii_letters + string.digits + "-._~+/=")  # of a bearer token, by RFC 6750


@dataclass(frozen=True)
class AccessToken:
    """The secret that a client must send.

    Args:
        text: the secret; the repr does not show it.
        is_new: True if it was generated, so that it must be printed for the user.
    """

    text: str = field(repr=False)
    is_new: bool = False

    def is_said_by(self, authorization: str) -> bool:
        """True if a header `Authorization` has the token; the comparison takes constant time."""
        scheme, _, said = authorization.partition(" ")
        # The server keeps bytes that are not UTF-8 as halves of characters.
        text = said.strip().encode("utf-8", "surrogatepass")
        return hmac.compare_digest(text, self.text.encode()) and scheme.lower() == "bearer"

    @classmethod
    def chosen(cls, host: str, file: Path | None, environment: Mapping[str, str]) -> AccessToken | None:
        """The token of the file, else of the environment, else a new one; None if only this machine can reach the host.

        Args:
            host: the name or address to listen on.
            file: a file with the token as its only line.
            environment: the environment variables; `SLACKWATER_UI_TOKEN` may have the token.

        Raises:
            UsageError: the file cannot be read, or the token is not valid.
        """
        if file is not None:
            return cls(_checked(_read(file), f"file {file}"))
        if environment.get(VARIABLE):
            return cls(_checked(environment[VARIABLE], f"environment variable {VARIABLE}"))
        return None if is_loopback(host) else cls(os.urandom(24).hex(), is_new=True)


def is_loopback(host: str) -> bool:
    """True if only programs on this machine can reach the host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may lead anywhere


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"the token file {file} cannot be read: {reason}; write the token into it") from None


def _checked(text: str, place: str) -> str:
    # The message names the fault, but never the text: it may be a secret.
    if len(text) < _SHORTEST or not _ALLOWED.issuperset(text):
        raise UsageError(
            f"the {place} has no valid token: give {_SHORTEST} or more letters, digits or any of -._~+/=, in one line; "
            "`openssl rand -hex 24` makes one"
        )
    return text


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

API = "/api/"
_METHODS = ("GET", "HEAD")
_OWN_PAGES = ("same-origin", "none")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Server": "slackwater",
}


class Gate:
    """Passes a request on, or refuses it with a reason.

    * Methods: only GET and HEAD.
    * Without a token: only requests to a name of this machine.  Under DNS rebinding a foreign page uses its own name.
    * With a token: every answer about the root needs it.  The files of the page itself are public.
    * Pages of other sites are refused, by the header `Sec-Fetch-Site` of the browser.

    Args:
        token: the required token; None for none.
    """

    def __init__(self, token: AccessToken | None) -> None:
        self._token = token

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The middleware of the application; it also turns routing errors into JSON."""
        refused = self._refused(request)
        if refused is not None:
            return refused
        try:
            return await handler(request)
        except web.HTTPException as error:
            return refusal(error.status, f"{request.method} {request.path}: {error.reason}")

    async def seal(self, _request: web.Request, response: web.StreamResponse) -> None:
        """Sets the headers of every answer; for the application's signal `on_response_prepare`."""
        response.headers.update(_HEADERS)

    def _refused(self, request: web.Request) -> web.Response | None:
        if request.method not in _METHODS:
            return refusal(405, f"{request.method} is not allowed: this page only reads; use GET")
        if self._token is None and not _names_this_machine(request.headers.get("Host", "")):
            return refusal(
                403,
                "this page answers only under a name of its own machine, such as http://localhost; for another name, "
                "start it with a token (--token-file)",
            )
        if not request.path.startswith(API):
            return None
        if request.headers.get("Sec-Fetch-Site", "none") not in _OWN_PAGES:
            return refusal(403, "a page of another site sent this request: open this page itself")
        if self._token is not None and not self._token.is_said_by(request.headers.get("Authorization", "")):
            missing = refusal(401, "the token is missing or wrong: enter the token of `slackwater ui`")
            missing.headers["WWW-Authenticate"] = "Bearer"
            return missing
        return None


def refusal(status: int, message: str) -> web.Response:
    """An error as a JSON answer."""
    return web.json_response({"error": message}, status=status)


def _names_this_machine(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
