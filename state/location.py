"""A location in an object store: its URL and the options to reach it, named as obstore and Lance name them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from state.errors import SettingsError

SECRET_OPTIONS = frozenset(
    {
        "access_key",
        "access_key_id",
        "account_key",
        "api_key",
        "authorization",
        "connection_string",
        "credential",
        "customer_key",
        "customer_key_base64",
        "encryption_key",
        "master_key",
        "passphrase",
        "passwd",
        "password",
        "private_key",
        "proxy_url",
        "sas_key",
        "secret",
        "secret_access_key",
        "secret_key",
        "service_account_key",
        "shared_access_key",
        "shared_access_signature",
        "storage_key",
        "token",
    }
)
"""Names of options that hold secrets, with any prefix (`aws_`, `azure_storage_`, `client_`, `session_`, ...)."""

Durability = Literal["power_loss", "process"]
"""Losses that an acknowledged commit on a disk survives; an object store survives all of them by itself."""

_SECRET_ENDS = tuple(name.replace("_", "") for name in SECRET_OPTIONS)
_LANCE_FILE = "file-object-store"
_SCHEMES = ("file", "s3", "gs", "az", "http", "https")
_FILE_TRANSFER = ("sftp", "ftp", "ftps", "scp")
_FILE = re.compile(r"file:", re.IGNORECASE)
_ONE_SLASH = re.compile(rf"({'|'.join(_SCHEMES)}):(?!//)", re.IGNORECASE)


def is_secret(option: str) -> bool:
    """True if an option holds a secret, also as `AccountKey`, `account-key` or `fs.azure.account.key.ACCOUNT`.

    See `SECRET_OPTIONS`.
    """
    parts = option.lower().replace("_", "").replace("-", "").split(".")
    return any("".join(parts[: count + 1]).endswith(_SECRET_ENDS) for count in range(len(parts)))


def _normalised(url: str | os.PathLike[str]) -> str:
    """The URL in absolute form, without user information, query or trailing slash; `file://` for a local path.

    The path of a `file://` URL is literal: `%20` are three characters, as in a local path.
    """
    text = os.fspath(url)
    if match := _FILE.match(text):
        return f"file://{_path_of_file_url(text, text[match.end() :])}"
    if match := _ONE_SLASH.match(text):
        raise SettingsError(f"{text} has no `//` after {match[0]}; write {match[1].lower()}://... or ./{text}")
    if "://" not in text or text.startswith(("/", ".", "~")):
        return "file://" + str(Path(text).expanduser().absolute())
    parts = urlsplit(text)
    if parts.scheme in _FILE_TRANSFER:
        raise SettingsError(
            f"{parts.scheme}://{parts.hostname or ''}: {parts.scheme.upper()} servers are not read: "
            "mount the directory, or copy its files to a bucket"
        )
    if parts.scheme not in _SCHEMES:
        raise SettingsError(
            f"{parts.scheme}:// is not a valid scheme of a URL; use a local path or one of {', '.join(_SCHEMES)}"
        )
    if not parts.hostname:
        raise SettingsError(f"{parts.scheme}:// needs a bucket or host after it")
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def _path_of_file_url(url: str, rest: str) -> str:
    """The absolute path in a URL of RFC 8089: `file:///x`, `file://localhost/x` or `file:/x`.

    Args:
        url: the URL, for the message.
        rest: the URL without `file:`.

    Raises:
        SettingsError: the path is not absolute, or the URL names another machine.
    """
    host, slash, path = rest[2:].partition("/") if rest.startswith("//") else ("", rest[:1], rest[1:])
    if host.lower() not in ("", "localhost"):
        raise SettingsError(
            f"{url} names a file of the machine {host!r}: write file:///{path}, or mount it and give that path"
        )
    if slash != "/" and rest != "//":
        raise SettingsError(f"{url} has no absolute path: write file:///..., or a local path without file:")
    return str(Path(f"/{path.lstrip('/')}"))


@dataclass(frozen=True)
class Location:
    """A URL and the options that open it.  The repr never shows the value of an option.

    Args:
        url: a local path, or `file://`, `s3://`, `gs://`, `az://`, `http(s)://`.  `_normalised` is the only parser.
        storage_options: options by the names of obstore and Lance (`access_key_id`, `endpoint`, `allow_http`, ...).
            The usual environment variables give the others.
        durability: of commits to a local path: `"power_loss"` syncs their files, `"process"` leaves that to the system.
    """

    url: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    durability: Durability = field(default="power_loss", repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.durability not in get_args(Durability):
            raise SettingsError(f"durability={self.durability!r}: give one of {', '.join(get_args(Durability))}")
        object.__setattr__(self, "url", _normalised(self.url))
        object.__setattr__(self, "storage_options", {k.lower(): _text(v) for k, v in self.storage_options.items()})

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0]

    @property
    def is_local(self) -> bool:
        return self.scheme == "file"

    @property
    def is_web(self) -> bool:
        """True for a directory on a web server, false for a bucket or a disk."""
        return self.scheme in ("http", "https")

    @property
    def path(self) -> Path:
        """The directory of a local location."""
        return Path(self.url[len("file://") :])

    @property
    def lance_uri(self) -> str:
        """The URI for Lance.

        With a bare path Lance 14 does not check the last write of a file: on a full disk it commits truncated files.
        With this scheme it writes each file completely or not at all.
        """
        return f"{_LANCE_FILE}://{quote(str(self.path))}" if self.is_local else self.url

    def of_lance_uri(self, uri: str) -> Location:
        """The location with a `lance_uri`, with the options of this one."""
        scheme, _, path = uri.partition("://")
        url = unquote(path) if scheme == _LANCE_FILE else uri
        return Location(url, self.storage_options, self.durability)

    @property
    def host(self) -> Location:
        """The host or bucket of this location, with the same options."""
        parts = urlsplit(self.url)
        return Location(f"{parts.scheme}://{parts.netloc}", self.storage_options)

    @property
    def below_host(self) -> str:
        """The path below the host or bucket, with a final slash; empty for the host itself."""
        path = urlsplit(self.url).path.strip("/")
        return f"{path}/" if path else ""

    def child(self, name: str) -> Location:
        """A location below this one, with the same options."""
        return Location(f"{self.url}/{name}", self.storage_options, self.durability)

    def __str__(self) -> str:
        return str(self.path) if self.is_local else self.url


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
