"""A place in an object store: URL plus the options to reach it, in the names that obstore and Lance share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from state.errors import SettingsError

SECRET_OPTIONS = frozenset(
    {
        "access_key",
        "access_key_id",
        "account_key",
        "client_secret",
        "password",
        "sas_key",
        "sas_token",
        "secret_access_key",
        "service_account_key",
        "session_token",
        "token",
    }
)
_SCHEMES = ("file", "s3", "gs", "az", "http", "https")


def is_secret(option: str) -> bool:
    """Whether an option holds a secret, whatever prefix (`aws_`, `azure_storage_`, ...) its name has."""
    return option.lower().endswith(tuple(SECRET_OPTIONS))


def _normalised(url: str | os.PathLike[str]) -> str:
    """Absolute, without user information, query or trailing slash; local paths as `file://`."""
    text = os.fspath(url)
    if "://" not in text:
        return "file://" + str(Path(text).expanduser().absolute())
    parts = urlsplit(text)
    if parts.scheme not in _SCHEMES:
        raise SettingsError(
            f"{parts.scheme}:// is not a known kind of URL; use a local path or one of {', '.join(_SCHEMES)}"
        )
    if parts.scheme == "file":
        return "file://" + (text[len("file://") :].rstrip("/") or "/")
    if not parts.hostname:
        raise SettingsError(f"{parts.scheme}:// needs a bucket or host after it")
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


@dataclass(frozen=True)
class Location:
    """A URL, and the options that open it.  The repr never shows an option's value.

    Args:
        url: a local path, or `file://`, `s3://`, `gs://`, `az://`, `http(s)://`.
        storage_options: as obstore and Lance name them (`access_key_id`, `endpoint`, `allow_http`, ...).
            What is not given comes from the usual environment variables.
    """

    url: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
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
        """Whether it is a directory on a web server, not a bucket."""
        return self.scheme in ("http", "https")

    @property
    def path(self) -> Path:
        """The directory of a local location."""
        return Path(self.url[len("file://") :])

    @property
    def lance_uri(self) -> str:
        """The URI for Lance.

        By a bare path Lance 14 forgets to look whether the last write of a file failed: on a full disk it commits files
        that are cut short.  By this scheme it writes each of them whole or not at all.
        """
        return f"file-object-store://{quote(str(self.path))}" if self.is_local else self.url

    @property
    def host(self) -> Location:
        """The host or bucket of a location, reached with the same options."""
        parts = urlsplit(self.url)
        return Location(f"{parts.scheme}://{parts.netloc}", self.storage_options)

    @property
    def below_host(self) -> str:
        """The path below the host or bucket, with a final slash if there is any."""
        path = urlsplit(self.url).path.strip("/")
        return f"{path}/" if path else ""

    def child(self, name: str) -> Location:
        """A place below this one, reached with the same options."""
        return Location(f"{self.url}/{name}", self.storage_options)

    def __str__(self) -> str:
        return str(self.path) if self.is_local else self.url


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
