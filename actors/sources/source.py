"""What a source is: where its files are, how they are named, found and read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from actors.settings import require_one_of
from state.errors import SettingsError
from state.location import Location

if TYPE_CHECKING:
    pass
from actors.formats.registry import Format, format_type
from actors.sources.discovery import Discovery, Listing, Notifications

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
    discovery: Discovery = field(default_factory=Listing)
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
