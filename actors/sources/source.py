"""What a source is: where its files are, how they are named, found and read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import pyarrow as pa

from actors.settings import ReadLimits, require_one_of, require_positive
from state.errors import SettingsError
from state.location import Location

if TYPE_CHECKING:
    from actors.formats.reader import FileReader


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


Format = Parquet | Csv | Json | Text | CustomFormat
FORMATS: dict[str, type[Parquet] | type[Csv] | type[Json] | type[Text]] = {
    "parquet": Parquet,
    "csv": Csv,
    "json": Json,
    "text": Text,
}
_ENTRY_POINTS = "slackwater.formats"
_LONGEST_VISIBILITY_S = 43_200


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
        _require_zone(self)

    @property
    def relist_s(self) -> float:
        """Seconds between two listings, at least."""
        return self.interval_s

    def not_before(self, declared_at: datetime | None) -> datetime | None:
        """Objects that were written earlier are left out; None if none are.

        Args:
            declared_at: when the source was first declared, if that is known.
        """
        return _not_before(self, declared_at)


@dataclass(frozen=True, kw_only=True)
class Notifications:
    """Discovery by the events that a bucket sends to a queue of SQS, and now and then by a listing.

    The queue belongs to one source of one pipeline.  An event is a hint: the object that it names is looked at, and
    what is there counts.  The listing finds what no event has told of.

    Args:
        queue_url: of the queue, as SQS gives it; it holds no credentials.
        region: of the queue; None takes that of its URL, of the source's storage options or of the environment.
        endpoint: where SQS answers; None takes the host of the queue's URL.
        relist_interval_s: seconds from the end of one listing to the start of the next, at least; less than the queue
            keeps its messages.
        max_requests_per_hour: LIST requests; the interval becomes longer where it would take more.
        visibility_s: a message that was received comes again after so many seconds unless they are extended, which is
            done while its files are worked on: after a crash, events wait for so long.
        pollers: requests that wait for messages, side by side.
        modified_after: objects that were written earlier are left out; without a zone it is UTC.
        include_existing: whether objects count that were written before the run that first declared the source.

    What was read once stays, and its changes are noted, whatever is left out later.
    """

    queue_url: str
    region: str | None = None
    endpoint: str | None = None
    relist_interval_s: float = 86_400.0
    max_requests_per_hour: int = 3_600
    visibility_s: float = 120.0
    pollers: int = 2
    modified_after: datetime | None = None
    include_existing: bool = True

    def __post_init__(self) -> None:
        require_positive(self, "relist_interval_s", "max_requests_per_hour", "visibility_s", "pollers")
        if self.visibility_s > _LONGEST_VISIBILITY_S:
            raise SettingsError(
                f"Notifications(visibility_s={self.visibility_s!r}): SQS keeps a message invisible for "
                f"{_LONGEST_VISIBILITY_S} seconds at most"
            )
        _require_web_url("queue_url", self.queue_url)
        if self.endpoint is not None:
            _require_web_url("endpoint", self.endpoint)
        if urlsplit(self.queue_url).path.strip("/") == "":
            raise SettingsError(
                f"Notifications(queue_url={self.queue_url!r}): the URL names no queue; take what "
                "`aws sqs get-queue-url --queue-name ...` prints"
            )
        if self.queue_url.endswith(".fifo"):
            raise SettingsError(
                f"Notifications(queue_url={self.queue_url!r}): S3 sends no events to FIFO queues, and their "
                "order is of no use here; take a standard one"
            )
        _require_zone(self)

    @property
    def relist_s(self) -> float:
        """Seconds between two listings, at least."""
        return self.relist_interval_s

    def not_before(self, declared_at: datetime | None) -> datetime | None:
        """Objects that were written earlier are left out; None if none are.

        Args:
            declared_at: when the source was first declared, if that is known.
        """
        return _not_before(self, declared_at)


Discovery = Listing | Notifications


def _require_zone(discovery: Discovery) -> None:
    if discovery.modified_after is not None and discovery.modified_after.tzinfo is None:
        object.__setattr__(discovery, "modified_after", discovery.modified_after.replace(tzinfo=UTC))


def _not_before(discovery: Discovery, declared_at: datetime | None) -> datetime | None:
    limits = [discovery.modified_after, None if discovery.include_existing else declared_at]
    return max((limit for limit in limits if limit is not None), default=None)


def _require_web_url(option: str, url: str) -> None:
    """Refuses what is no plain URL of a web server; a URL with credentials in it is not repeated."""
    try:
        parts = urlsplit(url)
        plain = parts.username is None and not parts.query and not parts.fragment
    except (AttributeError, TypeError, ValueError):
        raise SettingsError(f"Notifications({option}=...): it is no URL") from None
    if not plain:
        raise SettingsError(
            f"Notifications({option}=...): a URL without user, query or fragment is wanted; credentials belong into "
            "storage_options or into the environment"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"Notifications({option}={url!r}): give a URL that begins with https://, as SQS writes it")


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
        order: in which its files are read, one after the other: by `name`, or by `last_modified` and then name; None
            for many at a time, in any order.
        materialize: whether its rows are kept in a dataset of their own.
    """

    name: str
    location: Location
    format: Format
    pattern: str = "**"
    schema: pa.Schema | None = None
    discovery: Discovery = Listing()
    policy: FilePolicy = FilePolicy()
    schema_evolution: str = "strict"
    metadata: tuple[str, ...] = ()
    order: str | None = None
    materialize: bool = False

    def __post_init__(self) -> None:
        if self.order is not None:
            require_one_of("order", self.order, ("name", "last_modified"))
        require_one_of("schema_evolution", self.schema_evolution, ("strict", "add_columns", "widen"))
        for name in self.metadata:
            require_one_of("metadata", name, METADATA)
        if self.policy.on_change == "replace" and not self.materialize:
            raise SettingsError(
                f'source {self.name}: on_change="replace" takes rows out again, for which they must be stored: declare '
                "it with materialize=True"
            )
        if isinstance(self.discovery, Notifications) and self.location.scheme != "s3":
            raise SettingsError(
                f"source {self.name}: only a bucket of s3:// sends notifications, and {self.location} is none: declare "
                "it with discovery=Listing(...)"
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


def orders(sources: Iterable[SourceDefinition]) -> dict[str, str]:
    """Source → the order in which its files are read, of those that have one."""
    return {source.name: source.order for source in sources if source.order is not None}


def appending(sources: Iterable[SourceDefinition]) -> frozenset[str]:
    """The sources whose changed files are read again, beside what was read of them."""
    return frozenset(source.name for source in sources if source.policy.on_change == "append")


def replacing(sources: Iterable[SourceDefinition]) -> frozenset[str]:
    """The sources whose changed files are read again, in place of what was read of them."""
    return frozenset(source.name for source in sources if source.policy.on_change == "replace")
