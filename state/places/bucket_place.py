"""Identity of a prefix in an object store, or of a directory on a web server."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from state.location import Location
from state.objects.object_client import endpoint_of

_AWS = re.compile(r"(?:^|\.)amazonaws\.com(?P<partition>\.cn)?$")
_AWS_BUCKET = re.compile(r"^(?P<bucket>.+?)\.s3[.-]")
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d+)){0,3}")
_GOOGLE = "storage.googleapis.com"
_AZURE = ".core.windows.net"
_AZURE_EMULATOR = "127.0.0.1:10000"
_EMULATOR_ACCOUNT = "devstoreaccount1"
_GOOGLE_ENDPOINTS = ("base_url", "google_base_url", "endpoint", "endpoint_url")
_AZURE_ENDPOINTS = ("endpoint", "azure_endpoint", "azure_storage_endpoint")
_AZURE_ACCOUNTS = ("account_name", "azure_storage_account_name")
_AZURE_EMULATORS = ("use_emulator", "azure_storage_use_emulator")


@dataclass(frozen=True)
class BucketPlace:
    """A prefix of a bucket.

    Doubts count as equal: the case of hosts and buckets and empty parts of a prefix are ignored, and http and https on
    their default ports are one server.

    Args:
        server: host and port, lower case; without a port for 80 and 443.
        parts: the bucket, then the parts of the prefix, decoded, without `.`, `..` and empty parts.
    """

    server: str
    parts: tuple[str, ...]

    @classmethod
    def of(cls, location: Location) -> BucketPlace:
        """The place of a location in an object store or on a web server.

        Raises:
            SettingsError: the endpoint is not a valid URL.
        """
        url = urlsplit(location.url)
        if location.is_web:
            server, above = _server(location.url)
            return cls(*_on_host(*_with_bucket_of_host(server, above)))
        bucket = url.netloc.lower()
        endpoint = _endpoint(location)
        server, above = _server(endpoint)
        server = server.removeprefix(f"{bucket}.")
        if above[-1:] == [bucket]:
            above = above[:-1]  # an endpoint of virtual-hosted style can have the bucket in its path
        server, parts = _on_host(server, [*above, bucket, *_parts(url.path)])
        return cls(server, parts)

    def names_to(self, other: BucketPlace) -> tuple[str, ...] | None:
        """The names from this prefix down to the other prefix; None if that is not below this one."""
        is_below = self.server == other.server and other.parts[: len(self.parts)] == self.parts
        return other.parts[len(self.parts) :] if is_below else None

    @property
    def address(self) -> str:
        """Server, bucket and prefix."""
        return "/".join((self.server, *self.parts))


def _endpoint(location: Location) -> str:
    """The URL of the server of a bucket."""
    if location.scheme == "s3":
        return endpoint_of(location) or "https://s3.amazonaws.com"
    if location.scheme == "gs":
        return _setting(location, _GOOGLE_ENDPOINTS) or f"https://{_GOOGLE}"
    if endpoint := _setting(location, _AZURE_ENDPOINTS):
        return endpoint
    is_emulator = _setting(location, _AZURE_EMULATORS).lower() in ("true", "1", "yes", "on")
    account = _setting(location, _AZURE_ACCOUNTS) or (_EMULATOR_ACCOUNT if is_emulator else "")
    return f"http://{_AZURE_EMULATOR}/{account}" if is_emulator else f"https://{account}.blob{_AZURE}"


def _setting(location: Location, names: tuple[str, ...]) -> str:
    """An option, or else the environment variable of its name; empty without both."""
    options = location.storage_options
    variables = [name.upper() for name in names if name.startswith(("google_", "azure_"))]
    given = [options.get(name, "") for name in names] + [os.environ.get(name, "") for name in variables]
    return next(filter(None, given), "")


def _server(url: str) -> tuple[str, list[str]]:
    """The host with its port, and the parts of the path, of the URL of a server."""
    split = urlsplit(url)
    host = _one_spelling((split.hostname or "").rstrip("."))
    try:
        port = split.port
    except ValueError:
        port = None  # the client refuses it
    if _is_this_machine(host):
        host = "localhost"
    return host if port in (None, 80, 443) else f"{host}:{port}", _parts(split.path)


def _one_spelling(host: str) -> str:
    """The canonical form of an address: clients read `127.1`, `0x7f000001` and `127.0.0.1` as the same address."""
    try:
        return str(ipaddress.ip_address(socket.inet_aton(host) if _NUMERIC.fullmatch(host) else host))
    except (ValueError, OSError):
        return host


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified


def _with_bucket_of_host(server: str, parts: list[str]) -> tuple[str, list[str]]:
    """The server and the parts of a URL for browsers, whose host can begin with the bucket."""
    if _AWS.search(server) and ".vpce." not in server and (match := _AWS_BUCKET.match(server)):
        return server, [match["bucket"], *parts]
    if server.endswith(f".{_GOOGLE}"):
        return _GOOGLE, [server.removesuffix(f".{_GOOGLE}"), *parts]
    return server, parts


def _on_host(server: str, parts: list[str]) -> tuple[str, tuple[str, ...]]:
    """Server and parts, with one name for each provider.

    A bucket of AWS has one owner in the whole world, so its region does not count.
    """
    if match := _AWS.search(server):
        return f"amazonaws.com{match['partition'] or ''}", _lower_bucket(parts)
    if server.endswith(_AZURE):
        # `dfs` and `blob` are two interfaces to the same containers.
        return server.partition(".")[0] + _AZURE, _lower_bucket(parts)
    return server, _lower_bucket(parts)


def _lower_bucket(parts: list[str]) -> tuple[str, ...]:
    return tuple([part.lower() for part in parts[:1]] + parts[1:])


def _parts(path: str) -> list[str]:
    """The parts of a path of a URL as the client of the store reads it: decoded, and without `.` and `..`."""
    parts: list[str] = []
    for part in unquote(path).split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return parts
