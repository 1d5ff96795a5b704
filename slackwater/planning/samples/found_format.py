"""The format of a file by its first bytes."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import PurePosixPath

from actors.formats.options import Avro, Csv, Debezium, Json, Orc, Parquet, Text
from actors.formats.registry import BuiltIn, Format
from actors.formats.signatures import binary_format, json_format, markup_format
from slackwater.planning.samples.csv_format import csv_format
from slackwater.planning.samples.sample import Sample
from state.visible import visible_json

_BINARY: dict[str, BuiltIn] = {"Parquet": Parquet(), "Avro": Avro(), "ORC": Orc()}
_TEXT_NAMES = (".txt", ".log")
_NO_DATA = (".py", ".pyc", ".ipynb", ".sh", ".sql", ".md", ".rst", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".lock")
_COMPRESSIONS = (".gz", ".zst", ".bz2", ".lz4", ".xz")


def found_format(sample: Sample) -> BuiltIn | str:
    """The format that suits a file, or the reason why no built-in one does."""
    suffix = PurePosixPath(sample.path).suffix.lower()
    if suffix in _NO_DATA:
        return f"{suffix} is the suffix of a program or a text about the files"
    binary = binary_format(sample.head)
    if binary is not None and binary.name in _BINARY:
        return _BINARY[binary.name]
    other = binary or markup_format(sample.head)
    if other is not None:
        return f"it is {other.name}: {other.next_step}"
    if not sample.head.strip():
        return "it has no content"
    if json_format(sample.head) is not None:
        return Debezium() if _is_change(sample.head) else Json()
    names = [suffix.lower() for suffix in PurePosixPath(sample.path).suffixes]
    is_text = next((name for name in reversed(names) if name not in _COMPRESSIONS), "") in _TEXT_NAMES
    csv = csv_format(sample)
    if isinstance(csv, str):
        return csv
    if is_text and (csv is None or csv.delimiter.encode() not in sample.head):
        return Text()
    return csv or Csv()


def _is_change(head: bytes) -> bool:
    """True if the first line is a change in Debezium's envelope."""
    try:
        change = json.loads(head.split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    change = change.get("payload", change) if isinstance(change, dict) else None
    return isinstance(change, dict) and "op" in change and ("before" in change or "after" in change)


def written_format(format: Format) -> str:
    """The Python expression of a format: its name, or its class with the options that differ from a default."""
    options = [
        f"{each.name}={literal(getattr(format, each.name))}"
        for each in fields(format)  # type: ignore[arg-type]
        if each.init and getattr(format, each.name) != each.default
    ]
    return f"sw.{type(format).__name__}({', '.join(options)})" if options else literal(format.name)


def literal(value: object) -> str:
    """A value as a literal of Python: JSON has the same texts, with double quotes.

    Invisible characters are escaped, so that the text of the module is what runs.
    """
    return visible_json(json.dumps(value, ensure_ascii=False)) if isinstance(value, str) else repr(value)
