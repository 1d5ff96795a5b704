"""The gate of the page: its access token, and the requests that pass."""

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
_ALLOWED = frozenset(string.ascii_letters + string.digits + "-._~+/=")  # what RFC 6750 lets a bearer token be made of


@dataclass(frozen=True)
class AccessToken:
    """A secret that whoever asks has to know.

    Args:
        text: the secret; the repr does not show it.
        is_new: whether it was made up here, so that somebody has to be told.
    """

    text: str = field(repr=False)
    is_new: bool = False

    def is_said_by(self, authorization: str) -> bool:
        """Whether a header `Authorization` names it; how long that takes does not tell how much of it was right."""
        scheme, _, said = authorization.partition(" ")
        return hmac.compare_digest(said.strip().encode(), self.text.encode()) and scheme.lower() == "bearer"

    @classmethod
    def chosen(cls, host: str, file: Path | None, environment: Mapping[str, str]) -> AccessToken | None:
        """The token of the file, else that of the environment; a new one, unless only this machine can reach the host.

        Args:
            host: the name or address to listen on.
            file: has the token as its only line.
            environment: may have it as `SLACKWATER_UI_TOKEN`.

        Raises:
            UsageError: the file cannot be read, or what it or the environment has is no token.
        """
        if file is not None:
            return cls(_checked(_read(file), f"file {file}"))
        if environment.get(VARIABLE):
            return cls(_checked(environment[VARIABLE], f"environment variable {VARIABLE}"))
        return None if is_loopback(host) else cls(os.urandom(24).hex(), is_new=True)


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may be anybody's


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"the token file {file} cannot be read: {reason}; write the token into it") from None


def _checked(text: str, place: str) -> str:
    # What is wrong with it is told, and not what it is.
    if len(text) < _SHORTEST or not _ALLOWED.issuperset(text):
        raise UsageError(
            f"the {place} holds no token: it takes {_SHORTEST} or more letters, digits or any of -._~+/=, in one line; "
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
    """Lets a request in, or says why not.

    * Only GET and HEAD.
    * Without a token: only by a name of this machine.  A page of somebody else whose name was made to lead here (DNS
      rebinding) calls us by that name.
    * With one: whatever is about the root needs it.  The files of the page itself are the same for everybody.
    * Not for the pages of other sites, as far as the browser tells.

    Args:
        token: what has to be said, or None.
    """

    def __init__(self, token: AccessToken | None) -> None:
        self._token = token

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """For an application; also turns every error of the routing into JSON."""
        refused = self._refused(request)
        if refused is not None:
            return refused
        try:
            return await handler(request)
        except web.HTTPException as error:
            return refusal(error.status, f"{request.method} {request.path}: {error.reason}")

    async def seal(self, _request: web.Request, response: web.StreamResponse) -> None:
        """Puts the headers on every answer; for the application's signal `on_response_prepare`."""
        response.headers.update(_HEADERS)

    def _refused(self, request: web.Request) -> web.Response | None:
        if request.method not in _METHODS:
            return refusal(405, f"{request.method}: this page only reads; ask with GET")
        if self._token is None and not _names_this_machine(request.headers.get("Host", "")):
            return refusal(
                403,
                "this page answers to names of its own machine only, as http://localhost: call it so; to reach it by "
                "another name start it with a token (--token-file)",
            )
        if not request.path.startswith(API):
            return None
        if request.headers.get("Sec-Fetch-Site", "none") not in _OWN_PAGES:
            return refusal(403, "the page of another site asked for this: open the page itself")
        if self._token is not None and not self._token.is_said_by(request.headers.get("Authorization", "")):
            missing = refusal(401, "the token is missing or wrong: enter that of `slackwater ui`")
            missing.headers["WWW-Authenticate"] = "Bearer"
            return missing
        return None


def refusal(status: int, message: str) -> web.Response:
    """An answer that says in JSON what is wrong."""
    return web.json_response({"error": message}, status=status)


def _names_this_machine(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
