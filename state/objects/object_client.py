"""Obstore clients of locations: with time-outs, retries, and the endpoint of the server."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from obstore.store import LocalStore, ObjectStore, from_url

from state.errors import SettingsError
from state.location import Location

CONNECT_TIMEOUT_S = 5
# A request may last long while bytes arrive; it fails when they stop for this time.
READ_TIMEOUT_S = 10
_TIMEOUT_S = 300
_DEFAULT_REGION = "us-east-1"
_ENDPOINT_OPTIONS = ("endpoint", "endpoint_url", "aws_endpoint", "aws_endpoint_url")
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_URL = re.compile(r"https?://[^/\s]")
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
_CLIENT_OPTIONS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "read_timeout",
        "timeout",
        "proxy_url",
        "user_agent",
    }
)
_BACKOFF: Any = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2}


def object_client(location: Location, *, max_attempts: int = 4, retry_within_s: float = 10.0) -> ObjectStore:
    """A client whose paths are relative to the location; a write creates the directory of a local one.

    A request ends after at most `retry_within_s` and one read timeout of 10 s.

    Args:
        location: the location of the root of its paths.
        max_attempts: the number of tries of one request.
        retry_within_s: no try begins later than this after the first, in seconds.
    """
    if location.is_local:
        return LocalStore(location.path, mkdir=True)
    given = dict(location.storage_options)
    client: Any = {name: given.pop(name) for name in _CLIENT_OPTIONS & given.keys()}
    # With options for the client, obstore ignores AWS_ALLOW_HTTP; an http endpoint implies it.
    endpoint = location.url if location.scheme == "http" else endpoint_of(location)
    client["allow_http"] = client.get("allow_http") == "true" or endpoint.startswith("http://")
    client.setdefault("connect_timeout", f"{CONNECT_TIMEOUT_S}s")
    client.setdefault("timeout", f"{_TIMEOUT_S}s")
    client.setdefault("read_timeout", f"{READ_TIMEOUT_S}s")
    if location.scheme == "s3" and "region" not in given and not _environment(_REGION_VARIABLES):
        given.setdefault("aws_region", _DEFAULT_REGION)
    retry: Any = {
        "max_retries": max_attempts - 1,
        "retry_timeout": timedelta(seconds=retry_within_s),
        "backoff": _BACKOFF,
    }
    config: Any = given or None
    return from_url(location.url, config=config, client_options=client, retry_config=retry)


def endpoint_of(location: Location) -> str:
    """The URL of the server from a location's options or the environment; empty for the provider's own.

    Raises:
        SettingsError: the value is not a valid URL; obstore and Lance would panic.
    """
    name, endpoint = next(_endpoints(location), ("", ""))
    if name and location.scheme == "s3" and not _URL.match(endpoint):
        raise SettingsError(
            f"{location}: {name} is {endpoint!r}, which is not a valid URL: give http://HOST:PORT or https://HOST, or "
            "leave it out for AWS itself"
        )
    return endpoint


def _endpoints(location: Location) -> Iterator[tuple[str, str]]:
    """The settings that name an endpoint, as (name of the setting, endpoint); the first counts."""
    for name in _ENDPOINT_OPTIONS:
        if name in location.storage_options:
            yield f"the storage option {name}", location.storage_options[name]
    for name in _ENDPOINT_VARIABLES:
        if name in os.environ:
            yield f"the environment variable {name}", os.environ[name]


def _environment(names: tuple[str, ...]) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")
