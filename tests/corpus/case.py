"""A case of the corpus: a small file, and its rows in Slackwater."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from actors.formats.options import Avro, Csv, Debezium, Json, Orc, Parquet, Text
from actors.schemas.conform import Timestamps
from actors.schemas.ddl import parse_schema

Format = Avro | Csv | Debezium | Json | Orc | Parquet | Text
Lines = tuple[str, ...]
"""The reading of a file: its schema, then one line for each row, bad record (`bad: `) or refusal (`refused: `)."""

_SUFFIXES = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"\x04\x22M\x18": ".lz4",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A file of one kind.

    Args:
        name: its kind, in words.
        format: the format with the options that the kind needs.
        content: the bytes, or a function that writes them.
        ours: the reading by Slackwater.
        schema: a declared schema as DDL; None to infer it.
        timestamps: see `Schema.timestamps`.
        converted: the values of the rows differ from the values in the file, as the documentation says.
        over_lines: a record of JSON has several lines, which Spark has an option for.
    """

    name: str
    format: Format
    content: bytes | Callable[[], bytes]
    ours: Lines
    schema: str | None = None
    timestamps: Timestamps = "exact"
    converted: bool = False
    over_lines: bool = False

    @property
    def title(self) -> str:
        """The name of the case in the whole corpus."""
        return f"{self.format.name}: {self.name}"

    @property
    def bytes(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else self.content()

    @property
    def file_name(self) -> str:
        """The name that other engines need in order to decompress the file."""
        content = self.bytes
        suffix = next((suffix for magic, suffix in _SUFFIXES.items() if content.startswith(magic)), "")
        kind = {"text": "txt", "debezium": "json"}.get(self.format.name, self.format.name)
        return f"file.{kind}{suffix}"

    @property
    def declared(self) -> pa.Schema | None:
        return None if self.schema is None else parse_schema(self.schema)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the format that are not at their defaults."""
        default = type(self.format)()
        return {
            each.name: getattr(self.format, each.name)
            for each in fields(self.format)
            if getattr(self.format, each.name) != getattr(default, each.name)
        }

    @property
    def outcome(self) -> str:
        """One word or two for the table of formats."""
        if any(line.startswith("refused: ") for line in self.ours):
            return "refused" if len(self.ours) == 1 else "refused after these rows"
        if any(line.startswith("bad: ") for line in self.ours):
            return "bad record"
        return "converted" if self.converted else "exact"
