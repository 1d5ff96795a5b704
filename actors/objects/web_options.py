"""Options of a web server, and the redirects that they allow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

from actors.telemetry.masked_repr import masked_repr
from state.errors import SettingsError
from state.location import Location
from state.objects.object_client import CONNECT_TIMEOUT_S, READ_TIMEOUT_S

_REDIRECT_OPTION = "redirect_hosts"
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?|\[[0-9a-f:.]+\](?::\d{1,5})?")
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}
_TIMEOUT_S = 300.0
_Parsed = TypeVar("_Parsed")


class RedirectRefused(Exception):
    """The server redirects to a place that is not allowed.

    Args:
        reason: the fault and the next step, in one line.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class WebOptions:
    """The storage options of a web server.

    Args:
        redirect_hosts: hosts that redirects may lead to beside the server itself, each with its port.
        may_go_plain: whether a redirect may lead from https to http.
        takes_any_certificate: whether certificates are not checked.
        connect_s, read_s, request_s: the limits of a connection, of the pause between two bytes, and of a request.
        proxy_url: the proxy; None for the one that the environment names.
        user_agent: the name of this client; None for that of the library.
    """

    redirect_hosts: frozenset[str] = frozenset()
    may_go_plain: bool = False
    takes_any_certificate: bool = False
    connect_s: float = CONNECT_TIMEOUT_S
    read_s: float = READ_TIMEOUT_S
    request_s: float = _TIMEOUT_S
    proxy_url: str | None = None
    user_agent: str | None = None

    def __repr__(self) -> str:
        return masked_repr(self)

    @classmethod
    def of(cls, location: Location) -> WebOptions:
        """The options of a location.

        Raises:
            SettingsError: an option is not known, or its value is not valid.
        """
        given = dict(location.storage_options)

        def taken(name: str, default: _Parsed, parsed: Mapping[str, _Parsed]) -> _Parsed:
            text = given.pop(name, None)
            if text is None:
                return default
            if text not in parsed:
                raise SettingsError(f"{location}: storage option {name} is {text!r}; give one of {', '.join(parsed)}")
            return parsed[text]

        def seconds(name: str, default: float) -> float:
            text = given.pop(name, None)
            match = _SECONDS.fullmatch(text) if text is not None else None
            if text is not None and match is None:
                raise SettingsError(f"{location}: storage option {name} is {text!r}; give seconds, such as '10s'")
            return default if match is None else float(match[1]) * _UNITS[match[2]]

        yes_or_no = {"true": True, "false": False}
        options = cls(
            redirect_hosts=_hosts(location, given.pop(_REDIRECT_OPTION, "")),
            may_go_plain=taken("allow_http", False, yes_or_no),
            takes_any_certificate=taken("allow_invalid_certificates", False, yes_or_no),
            connect_s=seconds("connect_timeout", CONNECT_TIMEOUT_S),
            read_s=seconds("read_timeout", READ_TIMEOUT_S),
            request_s=seconds("timeout", _TIMEOUT_S),
            proxy_url=given.pop("proxy_url", None),
            user_agent=given.pop("user_agent", None),
        )
        if given:
            raise SettingsError(
                f"{location}: storage option {min(given)} is not known for {location.scheme}://; correct its name"
            )
        return options


def _hosts(location: Location, text: str) -> frozenset[str]:
    hosts = [host.strip().lower() for host in text.split(",") if host.strip()]
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise SettingsError(
                f"{location}: storage option {_REDIRECT_OPTION} has {host!r}; give names of hosts, each with its port "
                "if that is not the usual one, separated by commas: 'cdn.example.com, files.example.com:8443'"
            )
    return frozenset(hosts)


def allowed_redirect(location: Location, options: WebOptions, url: str, target: str) -> str:
    """The whole URL that a redirect leads to.

    Args:
        location: the location that is read.
        url: the URL that redirects.
        target: the target as the server wrote it.

    Raises:
        RedirectRefused: the target is on another host, or on another port, that the options do not allow; or it is
            reached without encryption.
    """
    following = urljoin(url, target)
    try:
        parts, own = urlsplit(following), urlsplit(location.url)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        own_place = own.hostname, own.port or _PORTS[own.scheme]
    except (KeyError, ValueError):
        raise RedirectRefused("the server redirects to an address that is not valid; correct the server") from None
    is_upgrade = own_place == (host, 80) and (parts.scheme, port) == ("https", 443)
    shown = f"[{host}]" if ":" in host else host
    names = {f"{shown}:{port}", *([shown] if port == _PORTS[parts.scheme] else [])}
    if (host, port) != own_place and not is_upgrade and names.isdisjoint(options.redirect_hosts):
        name = min(names, key=len)
        raise RedirectRefused(
            f"the server redirects to {name}, which is not its own host; if that is right, allow it by the storage "
            f"option {_REDIRECT_OPTION}={name!r}"
        )
    if urlsplit(url).scheme == "https" and parts.scheme != "https" and not options.may_go_plain:
        raise RedirectRefused(
            "the server redirects from https to http; if that is right, give the storage option allow_http='true'"
        )
    return following
