"""Locations of Iceberg tables as catalogs write them."""

from __future__ import annotations

from urllib.parse import urlsplit

from state.location import Location

_S3 = ("s3", "s3a", "s3n")
_AZURE = ("abfs", "abfss", "wasb", "wasbs")


def iceberg_location(uri: str | None) -> Location | None:
    """The location of a URI of Iceberg; None without a URI, and for a store that Slackwater does not support.

    Iceberg's libraries have more schemes than Slackwater for the same stores: `s3a://`, `abfss://`.
    """
    if not uri:
        return None
    parts = urlsplit(uri)
    if parts.scheme in _S3:
        return Location(f"s3://{parts.netloc}{parts.path}")
    if parts.scheme in _AZURE and "@" in parts.netloc:
        container, _, host = parts.netloc.partition("@")
        return Location(f"az://{container}{parts.path}", {"endpoint": f"https://{host}"})
    if parts.scheme == "file":
        return Location(f"file://{parts.path}")
    return Location(uri) if parts.scheme == "gs" or not parts.scheme else None
