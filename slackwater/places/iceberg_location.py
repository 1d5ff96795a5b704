"""Locations of Iceberg tables as catalogs write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from state.location import Location

_S3 = ("s3", "s3a", "s3n")
_AZURE = ("abfs", "abfss", "wasb", "wasbs")
_S3_ACCESS = {
    "s3.endpoint": "endpoint",
    "s3.region": "region",
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "session_token",
}


def iceberg_location(uri: str | None, catalog: Mapping[str, Any] | None = None) -> Location | None:
    """The location of a URI of Iceberg; None without a URI, and for a store that Slackwater does not support.

    Iceberg's libraries have more schemes than Slackwater for the same stores: `s3a://`, `abfss://`.

    Args:
        catalog: the properties of the catalog, which can have the endpoint of the store and the access to it.
    """
    if not uri:
        return None
    parts = urlsplit(uri)
    if parts.scheme in _S3:
        access = {option: str(catalog[name]) for name, option in _S3_ACCESS.items() if catalog and catalog.get(name)}
        return Location(f"s3://{parts.netloc}{parts.path}", access)
    if parts.scheme in _AZURE and "@" in parts.netloc:
        container, _, host = parts.netloc.partition("@")
        return Location(f"az://{container}{parts.path}", {"endpoint": f"https://{host}"})
    if parts.scheme == "file":
        return Location(f"file://{parts.path}")
    return Location(uri) if parts.scheme == "gs" or not parts.scheme else None
