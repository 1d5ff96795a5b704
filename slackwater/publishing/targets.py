"""Targets of a publication: the format and place of a table, and the access to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from state.errors import SettingsError, UsageError
from state.location import Location


@dataclass(frozen=True)
class Delta:
    """A Delta table.

    Args:
        uri: the directory or URL of the table.
        storage_options: access to it, by the names that `Pipeline` takes; the environment gives the others.

    Raises:
        SettingsError: the URL is not valid.
    """

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        _require_writable(self.location)

    @property
    def location(self) -> Location:
        return Location(self.uri, self.storage_options)

    def __str__(self) -> str:
        return f"delta:{self.location}"


@dataclass(frozen=True)
class Iceberg:
    """An Iceberg table.

    Args:
        uri: the directory or URL of the table.
        catalog: the properties of its catalog, as PyIceberg names them, for example
            `{"type": "rest", "uri": "https://..."}`.  None for the catalog `slackwater` in PyIceberg's configuration.
            Without one, a table in a local directory has a catalog in the file `catalog.db` beside it.
        table: its name in the catalog; None for `slackwater.` and the last part of the URI.

    Raises:
        SettingsError: the URL or the name is not valid.
    """

    uri: str
    catalog: Mapping[str, str] | None = field(default=None, repr=False)
    table: str | None = None

    def __post_init__(self) -> None:
        _require_writable(self.location)
        if len(self.identifier) < 2 or not all(self.identifier):
            raise SettingsError(
                f"{'.'.join(self.identifier)!r} is not a valid name of an Iceberg table: give NAMESPACE.TABLE"
            )

    @property
    def location(self) -> Location:
        return Location(self.uri)

    @property
    def identifier(self) -> tuple[str, ...]:
        """The namespace and the name of the table."""
        return tuple((self.table or f"slackwater.{self.location.url.rpartition('/')[2]}").split("."))

    def __str__(self) -> str:
        return f"iceberg:{self.location}"


Target: TypeAlias = Delta | Iceberg

_FORMATS = ("delta", "iceberg")


def target_of(text: str, catalog: Mapping[str, str] | None = None, table: str | None = None) -> Target:
    """The target with the text `FORMAT:URI`.

    Args:
        text: for example `delta:s3://lake/published/by_carrier`.
        catalog: the catalog of an Iceberg table.
        table: the name of an Iceberg table in it.

    Raises:
        UsageError: the text is not valid, or an option belongs to another format.
        SettingsError: the URL is not valid.
    """
    name, colon, uri = text.partition(":")
    if name not in _FORMATS or not colon or not uri or uri.startswith("//"):
        raise UsageError(
            f"{text!r} is not a valid target: give FORMAT:URI with one of the formats {', '.join(_FORMATS)}, "
            "for example delta:s3://lake/published/by_carrier"
        )
    if name != "iceberg" and (catalog or table):
        raise UsageError(f"a catalog and the name of a table belong to Iceberg; {text} has none")
    return Iceberg(uri, catalog, table) if name == "iceberg" else Delta(uri)


def _require_writable(location: Location) -> None:
    if location.is_web:
        raise SettingsError(f"{location}: a web server is only read; publish to a directory or a bucket")
