"""The options of a CSV file, judged by DuckDB."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from tempfile import NamedTemporaryFile
from typing import Any

from actors.formats.options import Csv
from actors.formats.signatures import wide_encoding
from slackwater.planning.samples.sample import Sample
from state.errors import SettingsError

_OPTIONS = "Delimiter", "Quote", "Escape", "Comment", "SkipRows", "HasHeader", "DateFormat", "TimestampFormat"
_SNIFF = f"SELECT {', '.join(_OPTIONS)} FROM sniff_csv(?)"
_NONE = "(empty)"
_ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%fZ")
_WITH_COMMA = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+")
_MOST_ROWS = 1_000


def csv_format(sample: Sample) -> Csv | str | None:
    """The options that suit a CSV file; None if the sample decides nothing, or DuckDB is not installed.

    A text means that the encoding is not known.

    The options that equal a default of `Csv` have it.
    """
    decoded = _decoded(sample)
    if decoded is None:
        return "its text is neither UTF-8 nor cp1252: declare the encoding of the program that wrote it, encoding=..."
    encoding, text = decoded
    if not sample.is_whole:
        text = text[: text.rfind("\n") + 1]
    found = _sniffed(text)
    if found is None:
        return None
    format = Csv(encoding=encoding)
    for options in _options(found, text):
        try:
            format = replace(format, **options)
        except SettingsError:
            continue  # DuckDB has forms of dates that the reader lacks
    return _with_decimal_comma(format, text)


def _decoded(sample: Sample) -> tuple[str, str] | None:
    """The encoding of the file, and its text; None for another encoding."""
    encoding, head = wide_encoding(sample.head) or "utf-8", sample.head
    try:
        text = head.decode(encoding)
    except UnicodeDecodeError as error:
        # The last character of a sample may be cut.
        is_cut = not sample.is_whole and error.start >= len(head) - 4
        if not is_cut:
            return _of_windows(head)
        text = head[: error.start].decode(encoding)
    return encoding, text.lstrip("\ufeff")


def _of_windows(head: bytes) -> tuple[str, str] | None:
    try:
        return "cp1252", head.decode("cp1252")
    except UnicodeDecodeError:
        return None


def _sniffed(text: str) -> dict[str, Any] | None:
    try:
        import duckdb
    except ModuleNotFoundError:
        return None
    if not text.strip():
        return None
    with NamedTemporaryFile("wb", prefix="slackwater-sample-", suffix=".csv") as sample, duckdb.connect() as connection:
        sample.write(text.encode())
        sample.flush()
        try:
            found = connection.execute(_SNIFF, [sample.name]).fetchone()
        except duckdb.Error:
            return None
    return None if found is None else dict(zip(_OPTIONS, found, strict=True))


def _options(found: dict[str, Any], text: str) -> list[dict[str, Any]]:
    """The options one by one, so that one that cannot be used leaves the others."""
    options: list[dict[str, Any]] = [{"header": bool(found["HasHeader"])}]
    # Of a file with one column, DuckDB reports any delimiter.
    if found["Delimiter"] in text:
        options.append({"delimiter": found["Delimiter"]})
    quote = found["Quote"]
    # Without quotes in the text, DuckDB reports either answer.
    if quote == _NONE and '"' in text:
        options.append({"quote": None})
    elif quote not in (_NONE, '"') and quote in text:
        options.append({"quote": quote})
    if found["Escape"] not in (_NONE, quote) and f"{found['Escape']}{quote}" in text:
        options.append({"escape": found["Escape"]})
    skipped = text.splitlines()[: found["SkipRows"]]
    if found["Comment"] != _NONE or (skipped and all(line.startswith("#") for line in skipped)):
        options.append({"comment": "#" if found["Comment"] == _NONE else found["Comment"]})
    elif skipped and not re.match(r"sep=.\r?\n", text):
        options.append({"skip_rows": len(skipped)})
    options += [
        {option: found[name]}
        for option, name in (("date_format", "DateFormat"), ("timestamp_format", "TimestampFormat"))
        if found[name] and found[name] not in _ISO
    ]
    return options


def _with_decimal_comma(format: Csv, text: str) -> Csv:
    """The format with `decimal=","` if a column has such numbers only."""
    if format.delimiter == ",":
        return format
    lines = text.splitlines()[format.skip_rows :]
    rows = csv.reader(lines, delimiter=format.delimiter, quotechar=format.quote or "\0")
    try:
        values = [row for row, _ in zip(rows, range(_MOST_ROWS), strict=False)][int(format.header) :]
    except csv.Error:
        return format
    for column in zip(*(row for row in values if values and len(row) == len(values[0])), strict=True):
        texts = [value for value in column if value]
        if texts and all(map(_WITH_COMMA.fullmatch, texts)):
            groups = any("." in value for value in texts)
            return replace(format, decimal=",", thousands="." if groups else None)
    return format
