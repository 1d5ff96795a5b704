"""What a source is: where its files are, how they are named, found and read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, Union

import pyarrow as pa

from actors.settings import ReadLimits, require_one_of, require_positive
from state.errors import SettingsError
from state.location import Location

if TYPE_CHECKING:
    from actors.readers.reader import FileReader


@dataclass(frozen=True, kw_only=True)
class Parquet:
    """Parquet files."""

    name: str = field(default="parquet", init=False)


@dataclass(frozen=True, kw_only=True)
class Csv:
    """CSV files.

    Args:
        delimiter: one character between fields.
        quote: the character around fields that contain a delimiter.
        header: whether the first line names the columns; without it the schema's names count, in order.
        null_values: the texts that mean null.
        encoding: of the text, a name that Python knows; a byte order mark is left out.
    """

    name: str = field(default="csv", init=False)
    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    null_values: tuple[str, ...] = ("", "NA", "NULL", "null", "NaN", "nan")
    encoding: str = "utf-8"


@dataclass(frozen=True, kw_only=True)
class Json:
    """Newline-delimited JSON files: one object a line."""

    name: str = field(default="json", init=False)


@dataclass(frozen=True, kw_only=True)
class Text:
    """Text files: a row a line, with one column.

    Args:
        encoding: of the text, a name that Python knows; a byte order mark is left out.
    """

    name: str = field(default="text", init=False)
    encoding: str = "utf-8"


class CustomFormat(Protocol):
    """A format of somebody else's: a frozen dataclass whose fields are its options, and go to JSON and back.

    With an entry point of the group `slackwater.formats`, named as the format and leading to the class, a source can be
    declared by that name, and the files that were read by it can be verified.
    """

    @property
    def name(self) -> str:
        """As in the entry point."""
        ...

    def reader(self, limits: ReadLimits) -> FileReader:
        """What reads its files."""
        ...


Format = Union[Parquet, Csv, Json, Text, CustomFormat]
FORMATS: dict[str, type[Parquet] | type[Csv] | type[Json] | type[Text]] = {
    "parquet": Parquet,
    "csv": Csv,
    "json": Json,
    "text": Text,
}
_ENTRY_POINTS = "slackwater.formats"


def format_type(name: str) -> Any:
    """The class of the format of a name, ours or an entry point's.

    Raises:
        SettingsError: nobody knows it.
    """
    if name in FORMATS:
        return FORMATS[name]
    others = {each.name: each for each in entry_points(group=_ENTRY_POINTS)}
    if name not in others:
        raise SettingsError(f"format {name!r} is not known; there are {', '.join([*FORMATS, *others])}")
    return others[name].load()


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Discovery by listing the prefix again and again.

    Args:
        interval_s: seconds from the end of one listing to the start of the next, at least.
        max_requests_per_hour: LIST requests; the interval becomes longer where it would take more.
        modified_after: objects that were written earlier are left out; without a zone it is UTC.
        include_existing: whether objects count that were written before the run that first declared the source.

    What was read once stays, and its changes are noted, whatever is left out later.
    """

    interval_s: float = 10.0
    max_requests_per_hour: int = 3_600
    modified_after: datetime | None = None
    include_existing: bool = True

    def __post_init__(self) -> None:
        require_positive(self, "interval_s", "max_requests_per_hour")
        if self.modified_after is not None and self.modified_after.tzinfo is None:
            object.__setattr__(self, "modified_after", self.modified_after.replace(tzinfo=timezone.utc))

    def not_before(self, declared_at: datetime | None) -> datetime | None:
        """Objects that were written earlier are left out; None if none are.

        Args:
            declared_at: when the source was first declared, if that is known.
        """
        limits = [self.modified_after, None if self.include_existing else declared_at]
        return max((limit for limit in limits if limit is not None), default=None)


METADATA = ("path", "size", "last_modified", "etag", "row", "epoch")
"""What a source may tell of each row, in columns named `_path`, `_size` and so on: its file's whole URL, size in bytes,
time and etag, the row's position in the file (from 0), and the epoch that ingested it."""


@dataclass(frozen=True, kw_only=True)
class FilePolicy:
    """What becomes of files that are not as they should be.

    Args:
        on_change: when a file of which rows were ingested is another one now: `ignore` (it is noted), `fail`,
            `append` (the new version is read as a new file), or `replace` (its rows come in place of the old ones).
        on_bad_record: `quarantine`, or `fail`.
    """

    on_change: str = "ignore"
    on_bad_record: str = "quarantine"

    def __post_init__(self) -> None:
        require_one_of("on_change", self.on_change, ("ignore", "fail", "append", "replace"))
        require_one_of("on_bad_record", self.on_bad_record, ("quarantine", "fail"))


@dataclass(frozen=True, kw_only=True)
class SourceDefinition:
    """One source of a pipeline.

    Args:
        name: what views call it.
        location: where its files are.
        format: how they are read.
        pattern: which names are taken.
        schema: None until it is given or taken from the first files.
        discovery: how new files are found.
        policy: what becomes of files that are not as they should be.
        schema_evolution: what becomes of columns that the schema does not have: `strict`, `add_columns` or `widen`.
        metadata: columns that tell where a row is from, see `METADATA`.
        materialize: whether its rows are kept in a dataset of their own.
    """

    name: str
    location: Location
    format: Format
    pattern: str = "**"
    schema: pa.Schema | None = None
    discovery: Listing = Listing()
    policy: FilePolicy = FilePolicy()
    schema_evolution: str = "strict"
    metadata: tuple[str, ...] = ()
    materialize: bool = False

    def __post_init__(self) -> None:
        require_one_of("schema_evolution", self.schema_evolution, ("strict", "add_columns", "widen"))
        for name in self.metadata:
            require_one_of("metadata", name, METADATA)
        if self.policy.on_change == "replace" and not self.materialize:
            raise SettingsError(
                f'source {self.name}: on_change="replace" takes rows out again, for which they must be stored: declare '
                "it with materialize=True"
            )

    def to_json(self) -> str:
        """What must stay equal over the life of a root, without secrets."""
        format: Any = self.format
        options = asdict(format) | {"name": format.name}
        definition: dict[str, Any] = {"url": self.location.url, "format": options, "pattern": self.pattern}
        if self.metadata:
            definition["metadata"] = list(self.metadata)
        if self.materialize:
            definition["materialize"] = True
        return json.dumps(definition, sort_keys=True)

    @classmethod
    def of_json(cls, name: str, text: str) -> SourceDefinition:
        """What `to_json` has written, of this version or an earlier one; without storage options."""
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
        )


def appending(sources: Iterable[SourceDefinition]) -> frozenset[str]:
    """The sources whose changed files are read again, beside what was read of them."""
    return frozenset(source.name for source in sources if source.policy.on_change == "append")


def replacing(sources: Iterable[SourceDefinition]) -> frozenset[str]:
    """The sources whose changed files are read again, in place of what was read of them."""
    return frozenset(source.name for source in sources if source.policy.on_change == "replace")
