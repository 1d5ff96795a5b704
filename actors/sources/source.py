"""The definition of a source: its place, format, pattern, schema, discovery and policies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa

from actors.files import ReadingOrder
from actors.formats.fitting_columns import require_fitting
from actors.formats.options import Csv, Debezium, Json, Text
from actors.formats.registry import Format, format_type, is_built_in
from actors.objects.web_options import WebOptions
from actors.schemas.column_names import NameRule
from actors.schemas.conform import Timestamps
from actors.settings import require_one_of
from actors.sources.discovery import Discovery, Listing, Notifications
from actors.sources.event_time import EventTime
from actors.sources.path_filter import PathFilter
from actors.sources.row_key import METADATA as OF_KEYS
from actors.sources.row_key import Key
from state.errors import SchemaError, SettingsError
from state.location import Location

OnChange: TypeAlias = Literal["ignore", "fail", "append", "replace"]
OnBadRecord: TypeAlias = Literal["quarantine", "fail"]
TableKind: TypeAlias = Literal["frame", "files"]
SchemaEvolution: TypeAlias = Literal["strict", "lenient", "add_columns", "widen"]
METADATA = ("path", "size", "last_modified", "etag", "row", "epoch")
"""Metadata of a row, in columns `_path`, `_size` and so on: the URL, size in bytes, modification time and etag of its
file, its position in the file (from 0), and the epoch that ingested it."""
RULES = 2
"""The newest version of the reading rules: the defaults that decide values or files.

* Version 1: the rules of the roots whose sources have no version recorded.
* Version 2: names of columns match in any case.  Directories that start with `_` or `.`, and unfinished files, are
  hidden.  Of CSV, only an unquoted empty field is null, and integers have no hexadecimal digits.  A CSV record ends
  with the line in which a malformed quoted field opens.
"""


@dataclass(frozen=True, kw_only=True)
class FilePolicy:
    """The treatment of changed files and of bad records.

    Args:
        on_change: the treatment of a new version of a file that has rows in the views: `ignore` (the change is noted),
            `fail`, `append` (the new version is read as a new file), or `replace` (its rows replace the old ones).
        on_bad_record: `quarantine` or `fail`.
        max_removed_share, max_removed_files: with `replace`, see `RemovalGuard`: the rows of deleted files stay in the
            views if more than this share of the files, and more than this number, would go at once.
    """

    on_change: OnChange = "ignore"
    on_bad_record: OnBadRecord = "quarantine"
    max_removed_share: float = 0.2
    max_removed_files: int = 100

    def __post_init__(self) -> None:
        require_one_of("on_change", self.on_change, get_args(OnChange))
        require_one_of("on_bad_record", self.on_bad_record, get_args(OnBadRecord))

    @property
    def removes(self) -> bool:
        """True if the rows of deleted files are retracted from the views."""
        return self.on_change == "replace"


@dataclass(frozen=True, kw_only=True)
class SourceDefinition:
    """One source of a pipeline.

    Args:
        name: the name of the source in views.
        location: the URL below which its files are, and the storage options.
        format: the format of the files, with its options.
        pattern: the glob pattern of the files' names, relative to the URL.
        schema: the declared schema; None to take it from the first files.
        discovery: the way to find new files.
        policy: the treatment of changed files and bad records.
        schema_evolution: the treatment of columns that a file lacks, or has alone, see `slackwater.Schema`; None for
            the default, see `evolution`.
        metadata: the metadata columns of each row, see `METADATA`.
        order: the order in which files are read one after the other: `name`, or `last_modified` and then name; None
            to read many files at a time, in any order.
        materialize: True to keep the rows in a dataset of their own.
        timestamps: the treatment of times with digits below microseconds: `exact` (the record is bad) or `truncate`.
        table: for a static table, `files`, or `frame` if its rows come with the pipeline and the start stores them.
        key: the key of its rows, of which views see the last one each; None if they see all rows.
        event_time: the event time of its rows; None for a source without a watermark.
        deletes: whether the run deletes or moves its files after the commit.
        rules: the version of the reading rules.  A root records the newest version when a source is first declared, and
            the source keeps it: see `as_recorded`.
    """

    name: str
    location: Location
    format: Format
    pattern: str = "**"
    schema: pa.Schema | None = None
    discovery: Discovery = field(default_factory=Listing)
    policy: FilePolicy = FilePolicy()
    schema_evolution: SchemaEvolution | None = None
    metadata: tuple[str, ...] = ()
    order: ReadingOrder | None = None
    materialize: bool = False
    timestamps: Timestamps = "exact"
    table: TableKind | None = None
    key: Key | None = None
    event_time: EventTime | None = None
    deletes: bool = False
    rules: int = RULES

    def __post_init__(self) -> None:
        if self.order is not None:
            require_one_of("order", self.order, get_args(ReadingOrder))
        if self.timestamps != "exact" and not is_built_in(self.format):
            raise SettingsError(
                f"source {self.name}: Schema(timestamps={self.timestamps!r}) is for the built-in formats; the reader "
                f"of {self.format.name} decides itself: leave the option out"
            )
        if self.schema_evolution == "add_columns" and isinstance(self.format, Debezium):
            raise SettingsError(
                f'source {self.name}: Schema(evolution="add_columns") does not look into the envelope of Debezium: '
                "declare a schema with the columns, or leave the option out"
            )
        raw = self.format.raw if isinstance(self.format, Json) else None
        if raw is not None and self.schema is not None and raw not in self.schema.names:
            raise SettingsError(
                f"source {self.name}: the schema lacks the column {raw} of Json(raw={raw!r}); declare it as a string"
            )
        if self.schema is not None:
            self._check_columns(self.schema)
        for name in self.metadata:
            require_one_of("metadata", name, METADATA)
        if self.policy.on_change == "replace" and not self.materialize:
            raise SettingsError(
                f'source {self.name}: on_change="replace" removes rows again and needs them stored: declare '
                "it with materialize=True"
            )
        if self.key is not None:
            self._check_key()
        if self.location.is_web:
            WebOptions.of(self.location)
        if isinstance(self.discovery, Notifications) and self.location.scheme != "s3":
            raise SettingsError(
                f"source {self.name}: only an s3:// bucket sends notifications, {self.location} does not: declare "
                "the source with discovery=Listing(...)"
            )

    def _check_columns(self, schema: pa.Schema) -> None:
        taken = dict[str, str]()
        for name in schema.names:
            if (other := taken.get(name.lower())) is not None:
                raise SchemaError(
                    f"source {self.name}: the schema has the columns {other} and {name}, which Spark takes for one: "
                    "rename or leave out one of them"
                )
            taken[name.lower()] = name
        try:
            require_fitting(self.format, schema)
        except SchemaError as error:
            raise SchemaError(f"source {self.name}: {error}") from None

    def _check_key(self) -> None:
        if not {*OF_KEYS} <= {*self.metadata}:
            raise SettingsError(f"source {self.name}: a source with a key has the metadata {' and '.join(OF_KEYS)}")
        if self.policy.on_change == "append":
            raise SettingsError(
                f'source {self.name}: with on_change="append" a file has its rows twice, and a key does not show which '
                'are newer; declare the source with on_change="replace" and materialize=True'
            )

    @property
    def evolution(self) -> SchemaEvolution:
        """The treatment of other columns: by default `strict` for a declared schema, if files show their columns.

        The columns of a sample are not declared, and a JSON record without a value may omit its field.
        """
        if self.schema_evolution is not None:
            return self.schema_evolution
        return "strict" if self.schema is not None and self.shows_columns else "lenient"

    @property
    def shows_columns(self) -> bool:
        """False for a format whose files have neither a header nor a schema."""
        return not isinstance(self.format, (Json, Debezium, Text))

    @property
    def names(self) -> NameRule:
        """The rule that matches the columns of files with the columns of the source."""
        return "any_case" if self.rules > 1 else "exact"

    @property
    def path_filter(self) -> PathFilter:
        """The filter of listed names."""
        return PathFilter(self.pattern, hides_directories=self.rules > 1)

    @property
    def required(self) -> tuple[str, ...]:
        """The columns in which every row must have a value."""
        of_key = () if self.key is None else self.key.required
        of_time = () if self.event_time is None else (self.event_time.column,)
        return tuple(dict.fromkeys([*of_key, *of_time]))

    @property
    def uses_times(self) -> bool:
        """True if rows or their order depend on the exact times of files."""
        return self.order == "last_modified" or "last_modified" in self.metadata

    def to_json(self) -> str:
        """The options that must stay equal over the life of a root, as JSON without secrets."""
        format: Any = self.format
        options = asdict(format) | {"name": format.name}
        definition: dict[str, Any] = {"url": self.location.url, "format": options, "pattern": self.pattern}
        if self.metadata:
            definition["metadata"] = list(self.metadata)
        if self.materialize:
            definition["materialize"] = True
        if self.timestamps != "exact":
            definition["timestamps"] = self.timestamps
        if self.evolution != "lenient":
            definition["evolution"] = self.evolution
        if self.rules > 1:
            definition["rules"] = self.rules
        if self.table is not None:
            definition["table"] = self.table
        if self.key is not None:
            definition["key"] = {name: value for name, value in asdict(self.key).items() if value}
        if self.event_time is not None:
            definition["event_time"] = self.event_time.column
        return json.dumps(definition, sort_keys=True)

    @classmethod
    def of_json(cls, name: str, text: str) -> SourceDefinition:
        """The definition that `to_json` wrote, without storage options."""
        recorded = json.loads(text)
        options: dict[str, Any] = {}
        for key, value in recorded["format"].items():
            options[key] = tuple(value) if isinstance(value, list) else value
        return cls(
            name=name,
            location=Location(recorded["url"]),
            format=format_type(str(options.pop("name")))(**options),
            pattern=recorded["pattern"],
            metadata=tuple(recorded.get("metadata", ())),
            materialize=recorded.get("materialize", False),
            schema_evolution=recorded.get("evolution", "lenient"),
            timestamps=recorded.get("timestamps", "exact"),
            table=recorded.get("table"),
            rules=recorded.get("rules", 1),
            key=Key(key.pop("columns"), **key) if (key := recorded.get("key")) else None,
            event_time=EventTime(column) if (column := recorded.get("event_time")) else None,
        )

    def as_recorded(self, text: str) -> SourceDefinition:
        """This definition, with the recorded rules, and the recorded values of options that are left to their defaults.

        Args:
            text: the recorded definition of the source, as `to_json` wrote it.
        """
        recorded = SourceDefinition.of_json(self.name, text)
        evolution = self.schema_evolution or recorded.schema_evolution
        format = self.format
        if isinstance(format, Csv) and isinstance(recorded.format, Csv) and format.null_values is None:
            format = replace(format, null_values=recorded.format.null_values)
        return replace(self, rules=recorded.rules, schema_evolution=evolution, format=format)


def recorded_filter(text: str) -> PathFilter:
    """The filter of listed names of a source, by its definition in the catalog."""
    recorded = json.loads(text)
    return PathFilter(recorded["pattern"], hides_directories=recorded.get("rules", 1) > 1)


def changed_arguments(before: str, now: str) -> list[str]:
    """The arguments in which two definitions differ, each with both values in words.

    Args:
        before: the recorded one, as `SourceDefinition.to_json` writes it.
        now: the declared one, in the same form.
    """
    was, given = (_arguments(json.loads(each)) for each in (before, now))
    names = list(dict.fromkeys([*was, *given]))
    if was["format"] != given["format"]:
        names = [name for name in names if not name.startswith("format ")]
    differ = [name for name in names if was.get(name) != given.get(name)]
    return [f"{name} was {was.get(name, 'not given')}, and is now {given.get(name, 'not given')}" for name in differ]


def _arguments(definition: Mapping[str, Any]) -> dict[str, str]:
    """Argument → its value as JSON, of a recorded definition."""
    rest = dict(definition)
    # It may change, and does not decide rows that were read.
    rest.pop("evolution", None)
    key, format = rest.pop("key", {}), rest.pop("format")
    given = {**rest, "format": format.pop("name"), **{f"format {name}": value for name, value in format.items()}}
    given |= {"key" if name == "columns" else f"Key({name})": value for name, value in key.items()}
    if "timestamps" in given:
        given["Schema(timestamps)"] = given.pop("timestamps")
    return {name: json.dumps(value) for name, value in given.items()}


def orders(sources: Iterable[SourceDefinition]) -> dict[str, ReadingOrder]:
    """Source → its reading order, for the sources that declare one."""
    return {source.name: source.order for source in sources if source.order is not None}


def appending(sources: Iterable[SourceDefinition]) -> frozenset[str]:
    """The sources with `on_change="append"`."""
    return frozenset(source.name for source in sources if source.policy.on_change == "append")


def event_times(sources: Iterable[SourceDefinition]) -> dict[str, EventTime]:
    """Source → the event time of its rows, for the sources with one."""
    return {source.name: source.event_time for source in sources if source.event_time is not None}


def event_columns(sources: Iterable[SourceDefinition]) -> dict[str, str]:
    """Source → the column with its event time, for the sources with one."""
    return {name: each.column for name, each in event_times(sources).items()}


def row_keys(sources: Iterable[SourceDefinition]) -> dict[str, Key]:
    """Source → the key of its rows, for the sources with one."""
    return {source.name: source.key for source in sources if source.key is not None}


def replacing(sources: Iterable[SourceDefinition]) -> frozenset[str]:
    """The sources with `on_change="replace"`."""
    return frozenset(source.name for source in sources if source.policy.on_change == "replace")
