"""The text of an error of DuckDB, for the user of a query."""

from __future__ import annotations

import re

_OWN_TABLE = re.compile(r'\s*Did you mean "(sqlite_|duckdb_|pg_|pragma_|information_schema)[^"]*"\?')


def duckdb_reason(text: str) -> str:
    """The error in one line, without the drawing of the position, and without a suggestion of DuckDB's own tables.

    Args:
        text: the text of the error.
    """
    return " ".join(_OWN_TABLE.sub("", text.partition("\n\nLINE ")[0]).split())
