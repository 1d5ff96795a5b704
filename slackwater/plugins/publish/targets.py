"""Targets of a publication: the format and place of a table, the access to it, and its schedule."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from actors.telemetry.masked_repr import masked_repr
from slackwater.extensions.entry import load
from slackwater.extensions.table_target import TablePublication
from slackwater.places.iceberg_location import iceberg_location
from state.errors import SettingsError, UsageError
from state.location import Location

_WEEK_S = 7 * 86_400.0
_TABLE_NAME = re.compile(r"[^/.:]+(\.[^/.:]+)+")


class _Table:
    """A table, as a `TableTarget` of the core."""

    def publication_of(self, view: str, root: Location) -> TablePublication:
        """The publication of a view to this table; see `TableTarget`."""
        publication: TablePublication = load("slackwater.plugins.publish.declaration:declared")(view, self, root)
        return publication


@dataclass(frozen=True)
class Delta(_Table):
    """A Delta table.

    Args:
        uri: the directory or URL of the table.
        storage_options: access to it, by the names that `Pipeline` takes; the environment gives the others.  Without
            options, a pipeline uses the options of its root for a table on the same kind of store.
        interval_s: seconds from one publication of a run to the next; 0 for each epoch.  Epochs that pass meanwhile are
            one commit.
        keep_s: a run deletes files that no version of this many last seconds has, and compacts small files.

    Raises:
        SettingsError: the URL or a number is not valid.
    """

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    interval_s: float = 0.0
    keep_s: float = _WEEK_S

    def __post_init__(self) -> None:
        _require_writable(self.location)
        _require_schedule(self)

    @property
    def location(self) -> Location:
        return Location(self.uri, self.storage_options)

    def __repr__(self) -> str:
        return masked_repr(self)

    def __str__(self) -> str:
        return f"delta:{self.location}"


@dataclass(frozen=True)
class Iceberg(_Table):
    """An Iceberg table.

    Args:
        uri: the directory or URL of the table; or its name in the catalog, as `NAMESPACE.TABLE`, and the catalog
            chooses the place.
        catalog: the properties of its catalog, as PyIceberg names them, for example
            `{"type": "rest", "uri": "https://..."}`.  None for the catalog `slackwater` in PyIceberg's configuration.
            Without one, a table in a local directory has a catalog in the file `catalog.db` in the parent directory.
        table: its name in the catalog; None for `slackwater.` and the last part of the URI.
        interval_s: seconds from one publication of a run to the next; 0 for each epoch.  Epochs that pass meanwhile are
            one commit.
        keep_s: a run expires snapshots older than this number of seconds.

    Raises:
        SettingsError: the URL, the name or a number is not valid.
    """

    uri: str
    catalog: Mapping[str, str] | None = field(default=None, repr=False)
    table: str | None = None
    interval_s: float = 60.0
    keep_s: float = _WEEK_S

    def __post_init__(self) -> None:
        if self.location is not None:
            _require_writable(self.location)
        elif self.table is not None:
            raise SettingsError(f"Iceberg({self.uri!r}, table={self.table!r}): both are names; give one of them")
        if len(self.identifier) < 2 or not all(self.identifier):
            raise SettingsError(
                f"{'.'.join(self.identifier)!r} is not a valid name of an Iceberg table: give NAMESPACE.TABLE"
            )
        _require_schedule(self)

    @property
    def location(self) -> Location | None:
        """The place of the table; None if its catalog chooses it."""
        if _TABLE_NAME.fullmatch(self.uri):
            return None
        location = Location(self.uri)
        return iceberg_location(self.uri, self.catalog) if location.scheme == "s3" else location

    @property
    def identifier(self) -> tuple[str, ...]:
        """The namespace and the name of the table."""
        if self.location is None:
            return tuple(self.uri.split("."))
        return tuple((self.table or f"slackwater.{self.location.url.rpartition('/')[2]}").split("."))

    def __repr__(self) -> str:
        return masked_repr(self)

    def __str__(self) -> str:
        return f"iceberg:{self.location or self.uri}"


@dataclass(frozen=True)
class ParquetFiles(_Table):
    """A directory of Parquet files, with the list of its files in `_manifest.json`.

    Args:
        uri: the directory or URL.
        storage_options: access to it, as for `Delta`.
        partition_by: columns of text, whole numbers, dates or booleans; each of their values has a directory of its
            own (`day=2026-01-31/`), and the files below it lack the column.
        interval_s: seconds from one publication of a run to the next; 0 for each epoch.  A publication writes at least
            one file for each partition with new rows, and small files are not compacted.
        keep_s: seconds until a file is deleted, after its rows have been rewritten.

    Raises:
        SettingsError: the URL, a column or a number is not valid.
    """

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    partition_by: str | Sequence[str] = ()
    interval_s: float = 60.0
    keep_s: float = 3_600.0

    def __post_init__(self) -> None:
        _require_writable(self.location)
        names = (self.partition_by,) if isinstance(self.partition_by, str) else tuple(self.partition_by)
        if not all(isinstance(name, str) and name for name in names) or len({*names}) < len(names):
            raise SettingsError(f"ParquetFiles(partition_by={self.partition_by!r}): give names of columns, each once")
        object.__setattr__(self, "partition_by", names)
        _require_schedule(self)

    @property
    def location(self) -> Location:
        return Location(self.uri, self.storage_options)

    def __repr__(self) -> str:
        return masked_repr(self)

    def __str__(self) -> str:
        return f"parquet:{self.location}"


Target: TypeAlias = Delta | Iceberg | ParquetFiles

_FORMATS = ("delta", "iceberg", "parquet")


def target_of(
    text: str, catalog: Mapping[str, str] | None = None, table: str | None = None, partition_by: Sequence[str] = ()
) -> Target:
    """The target with the text `FORMAT:URI`.

    Args:
        text: for example `delta:s3://lake/published/by_carrier`.
        catalog: the catalog of an Iceberg table.
        table: the name of an Iceberg table in it.
        partition_by: the columns of the directories of Parquet files.

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
    if name != "parquet" and partition_by:
        raise UsageError(f"partitions belong to directories of Parquet files; {text} is none")
    if name == "iceberg":
        return Iceberg(uri, catalog, table)
    return Delta(uri) if name == "delta" else ParquetFiles(uri, partition_by=partition_by)


def with_access_of(target: Target, root: Location) -> Target:
    """The target with the storage options of a root, if it is on the same kind of store and has none of its own."""
    if isinstance(target, Iceberg) or target.storage_options or target.location.scheme != root.scheme:
        return target
    return replace(target, storage_options=root.storage_options)


def missing_library(target: Target, library: str | None) -> UsageError:
    """The error of a format whose library is not installed."""
    extra = "delta" if isinstance(target, Delta) else "iceberg"
    return UsageError(f"{target} needs {library}; pip install 'slackwater[{extra}]'")


def _require_writable(location: Location) -> None:
    if location.is_web:
        raise SettingsError(f"{location}: a web server is only read; publish to a directory or a bucket")


def _require_schedule(target: Target) -> None:
    for name in ("interval_s", "keep_s"):
        value = getattr(target, name)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0:
            raise SettingsError(f"{type(target).__name__}({name}={value!r}): give a number of seconds, 0 or more")
