"""Why Slackwater reads a file as it does, where another engine reads other values."""

# ruff: noqa: E501  (a reason is one cell of a table)

from __future__ import annotations

from collections.abc import Mapping

_NO_LOSS = "A value that does not fit is reported, not changed."
_EXACT = "Text that looks like a number may be a code: it keeps its digits."
_SCHEMA = "The columns are matched by their names."

REASONS: Mapping[str, str] = {
    "csv: header, commas, quotes": "Spark expects a backslash before a quote; a doubled quote is the rule of RFC 4180.",
    "csv: semicolons, not declared": "The delimiter is declared, since a guess may change with the next file. "
    "`slackwater init` and the dry run propose it.",
    "csv: first line sep= of Excel": "The line is an instruction for Excel, not a header.",
    "csv: no header, though one is declared": "The first row would be lost.",
    "csv: header in other order, with one more column": f"{_SCHEMA} Spark counts them, and DuckDB and pyarrow keep the other column.",
    "csv: header lacks a declared column": "The missing column is null, and the run reports it; a strict source "
    "quarantines the file. The others keep the wrong name, or count the columns.",
    "csv: comments, not declared": "Without `comment`, the first line is the header.",
    "csv: backslash escapes, not declared": "Escapes are declared; the reason of the bad record names the option.",
    "csv: a quote that is not closed": "The rows behind the quote are not part of a text.",
    "csv: text behind the closing quote": "On one line, the text is unambiguous.",
    "csv: a row with fewer fields": "A line that was cut off looks like this.",
    "csv: a row with more fields": "A delimiter without quotes looks like this; Spark loses a field.",
    "csv: NA, null, NaN as texts": "Only an empty field is null: `NA` is also the code of Namibia.",
    "csv: empty, and quoted empty field": "An unquoted empty field is null, a quoted one is an empty text.",
    "csv: null markers": "A quoted text is never null in a column of text.",
    "csv: leading zeros": _EXACT,
    "csv: quoted leading zeros": _EXACT,
    "csv: sign of a phone number": _EXACT,
    "csv: hexadecimal text": f"{_EXACT} pyarrow overflows.",
    "csv: hexadecimal text in a bigint": _NO_LOSS,
    "csv: integers of 2^63 and above": "A double would make two identifiers one.",
    "csv: integers of 39 digits": "No decimal of Spark holds them, so they are text.",
    "csv: digits beyond a decimal": _NO_LOSS,
    "csv: NaN and infinity among numbers": "Among numbers they are numbers, as in DuckDB. pyarrow makes NaN null.",
    "csv: dates of another form, not declared": "`01/02/2026` has two meanings: the form is declared.",
    "csv: times": "A time without a zone is a wall-clock time; Spark takes the zone of its session.",
    "csv: seven fractional digits": f'{_NO_LOSS} `timestamps="truncate"` permits it.',
    "csv: a value that does not fit its column": f"{_NO_LOSS} Spark makes it null.",
    "csv: an integer beyond its column": f"{_NO_LOSS} Spark makes it null.",
    "csv: Latin text, not declared": f"{_NO_LOSS} Spark replaces the letter.",
    "csv: UTF-16, not declared": "Zeros in the text show the encoding; the reason names the option.",
    "csv: gzip with padding": "Zeros behind a gzip stream are padding, as for the program gzip.",
    "csv: xz": "The content decides about the compression; Spark reads the compressed bytes as text.",
    "csv: zstd": "The content decides about the compression.",
    "csv: lz4": "The content decides about the compression. Spark's Java process ends for lack of memory.",
    "csv: an empty file": "It shows no column. With a declared schema it has no rows.",
    "csv: JSON in a CSV source": "Its first line would name a column for ever.",
    "csv: HTML in a CSV source": "It is the error page of a download more often than data.",
    "json: several objects in a line": "Nothing in the file is lost; Spark reads the first object of a line.",
    "json: objects over several lines": "Nothing in the file is lost; Spark reads the first object of a file.",
    "json: an array that is not closed": "The rows before the end are complete.",
    "json: a line that was cut off": f"{_NO_LOSS} Spark makes it a row of nulls.",
    "json: a comma behind the last field": "It is not JSON; DuckDB accepts it.",
    "json: single quotes": "They are not JSON; Spark accepts them.",
    "json: a number as a record": f"{_NO_LOSS} Spark makes it a row of nulls.",
    "json: integers of 2^63 and above": "A double would make two identifiers one.",
    "json: an integer that no double holds, with fractions": "A double would change the integer.",
    "json: a fraction in a bigint": f"{_NO_LOSS} DuckDB rounds it, and Spark makes it null.",
    "json: numbers and texts in one field": "A text stays as it is; DuckDB adds quotes.",
    "json: an object as text": "The JSON text keeps its zeros and spaces.",
    "json: a number as text": "The JSON text keeps its zeros.",
    "json: an object that is always empty": "Its type is open until a value is seen; its text loses nothing.",
    "json: names in other case": "Names match in any case where exactly one column matches.",
    "json: a key twice": f"{_NO_LOSS} JSON does not define which of the two values counts; Spark takes the last.",
    "json: a time with a zone": "A time with a zone is an instant; Spark infers text, and pyarrow a time without its zone.",
    "json: a time without a zone": "Spark infers text.",
    "json: a date": "A later value may have a time. Spark infers text; declare `date`.",
    "json: an overflow": f"{_NO_LOSS} The others make it infinity.",
    "json: decimals": "Decimals are read from their digits; DuckDB goes through a double.",
    "json: leading zeros": "They are not JSON.",
    "json: bytes that are not UTF-8": f"{_NO_LOSS} Spark makes the record a row of nulls.",
    "json: half of a surrogate pair": f"{_NO_LOSS} Spark replaces it.",
    "json: an empty file": "It shows no field. With a declared schema it has no rows.",
    "json: CSV in a JSON source": "Every line would be a bad record.",
    "parquet: INT96 times": "Without a zone the type is a wall-clock time; Spark takes it as an instant.",
    "parquet: INT96 times outside 1677 to 2262": "Nanoseconds of 64 bits end in 2262; pyarrow overflows.",
    "parquet: times in nanoseconds, whole microseconds": "Nothing is lost.",
    "parquet: times in nanoseconds": 'Spark has microseconds; `timestamps="truncate"` leaves out the rest.',
    "parquet: times in nanoseconds, truncated": "Views have microseconds, as Spark has.",
    "parquet: times of day": "Views have no type for them; other columns of the file are read.",
    "parquet: integers in a declared text": "The type of a Parquet column is in the file, so a different one is an error; the others ignore "
    "a declared schema here.",
    "parquet: bigint in a declared int": '`evolution="widen"` accepts larger types; the others ignore a declared schema here.',
    "orc: times": "A time without a zone is a wall-clock time; Spark takes the zone of its session.",
    "parquet: dates": "Slackwater has the calendar of Arrow and Iceberg; Spark refuses dates before 1582 unless an option names the calendar.",
    "text: bytes that are not UTF-8": f"{_NO_LOSS} Spark replaces the letter.",
}
"""Title of a case → the reason; empty if the table needs none."""
