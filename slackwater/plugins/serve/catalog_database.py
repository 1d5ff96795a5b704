r"""Catalog for tools: `pg_catalog` and `information_schema` over the schemas of an epoch, in a read-only DuckDB.

Clients ask it for the names and types of relations: psql for `\d`, drivers and dashboards for their lists.  DuckDB has
a part of `pg_catalog`, with numbers of its own for types; here the tables have PostgreSQL's numbers and columns.
"""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from slackwater.confinement.confined_duckdb import confine, unconfined_duckdb
from slackwater.plugins.serve.catalog_tables import CATALOG_SCHEMA, DATABASE, MACROS, TYPES, catalog_tables
from slackwater.plugins.serve.engine import Interruption, Rows
from slackwater.plugins.serve.sql_error import SYNTAX, SqlError
from slackwater.plugins.serve.sql_text import MOST_BYTES, pieces, remembered

_NAMES = frozenset(
    {"information_schema", "current_database", "current_catalog", "current_schema", "current_schemas", "current_user",
     "session_user", "version", "current_setting", "set_config", "has_schema_privilege", "has_table_privilege",
     "regclass", "regtype", "regnamespace", "to_regclass", "to_regtype", "format_type", "quote_ident"}
)  # fmt: skip
_MEMORY_BYTES = 256 << 20
_RENAMED = {"current_catalog": "current_database()", "user": "current_user"}
_RENAMED_CALLS = {"json_build_object": "json_object"}
_CALL = re.compile(r'"?(\w+)"?\(.*\)', re.DOTALL)
_OPERATORS = {"!~~": "NOT LIKE", "~~": "LIKE"}


@remembered
def for_tools(text: str) -> str | None:
    """The text of a query about the schemas in DuckDB's dialect; None for a text that does not name the catalog."""
    if len(text.encode()) > MOST_BYTES:
        return None
    if not any(word.kind in ("word", "quoted") and _is_name(word.value.lower()) for word in pieces(text)):
        return None
    return for_duckdb(text)


def _is_name(word: str) -> bool:
    return word in _NAMES or (word.startswith("pg_") and word != "pg_typeof")


class CatalogDatabase:
    """A DuckDB with the catalog of some relations.  It is read-only, since all sessions of a worker share it.

    Args:
        schemas: name of a relation → its columns.
    """

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        with tempfile.TemporaryDirectory(prefix="slackwater-") as directory:
            file = Path(directory) / f"{DATABASE}.duckdb"
            _write(file, schemas)
            self._connection = unconfined_duckdb(_MEMORY_BYTES, threads=1, database=str(file), read_only=True)
            # All rows are read before the file is deleted.
            for name in catalog_tables(schemas):
                self._connection.execute(f"SELECT count(COLUMNS(*)) FROM {DATABASE}.{name}").fetchall()
        confine(self._connection)
        self._lock = threading.Lock()

    def rows(self, text: str, interruption: Interruption) -> Rows:
        """The rows of a query of a tool.

        Raises:
            SqlError: as `Rows`.
        """
        with self._lock:
            cursor = self._connection.cursor()
        cursor.execute(f"SET search_path = '{DATABASE}.{CATALOG_SCHEMA},{DATABASE}.public'")
        rows = Rows(cursor, text, {}, interruption)
        names = [_CALL.fullmatch(name) for name in rows.schema.names]
        # PostgreSQL names the column of a call by its function, and drivers look for that.
        shown = [found[1] if found else name for found, name in zip(names, rows.schema.names, strict=True)]
        rows.schema = pa.schema([field.with_name(name) for field, name in zip(rows.schema, shown, strict=True)])
        return rows

    def close(self) -> None:
        """Ends its DuckDB."""
        self._connection.close()


def _write(file: Path, schemas: Mapping[str, pa.Schema]) -> None:
    with unconfined_duckdb(_MEMORY_BYTES, threads=1, database=str(file)) as connection:
        run = connection.execute
        run(f"CREATE SCHEMA {CATALOG_SCHEMA}; CREATE SCHEMA tool_information; CREATE SCHEMA public")
        run(f"SET search_path = '{DATABASE}.{CATALOG_SCHEMA},{DATABASE}.public'")
        for name, table in catalog_tables(schemas).items():
            connection.register("made", table)
            run(f"CREATE TABLE {DATABASE}.{name} AS FROM made")
            connection.unregister("made")
        for name, duckdb_type in TYPES.items():
            run(f"CREATE TYPE {DATABASE}.{CATALOG_SCHEMA}.{name} AS {duckdb_type}")
        for macro in MACROS:
            run(f"CREATE MACRO {DATABASE}.{CATALOG_SCHEMA}.{macro}")


def for_duckdb(text: str) -> str:
    """A question of a tool in DuckDB's dialect: without PostgreSQL's own types, operators and collations."""
    words = pieces(text)
    out: list[str] = []
    at = 0
    while at < len(words):
        here, following = words[at], [word.value.lower() for word in words[at + 1 : at + 6]]
        name = here.value.lower() if here.kind in ("word", "quoted") else here.text
        if here.upper == "OPERATOR" and following[:2] == ["(", "pg_catalog"]:
            end = next((step for step in range(at, len(words)) if words[step].text == ")"), 0)
            if not end:
                raise SqlError(SYNTAX, "OPERATOR( has no end: write OPERATOR(pg_catalog.~)")
            operator = "".join(word.text for word in words[at + 4 : end])
            out.append(_OPERATORS.get(operator, operator))
            at = end + 1
        elif here.upper == "COLLATE":
            at += 4 if following[1:2] == ["."] else 2
        elif name == "pg_catalog" and following[:1] == ["."]:
            at += 2
        elif name == "information_schema" and following[:1] == ["."]:
            out.append("tool_information")
            at += 1
        elif here.kind == "text" and _is_regclass(following) and not here.value.isdecimal():
            out.append(f"to_regclass({here.text})")
            at += 5 if following[1] == "pg_catalog" else 3
        elif name in _RENAMED_CALLS and following[:1] == ["("]:
            out.append(_RENAMED_CALLS[name])
            at += 1
        elif name in _RENAMED and following[:1] != ["("] and not (at and words[at - 1].upper in (".", "AS")):
            out.append(_RENAMED[name])
            at += 1
        else:
            out.append(here.text)
            at += 1
    return _joined(out)


def _is_regclass(words: list[str]) -> bool:
    return words[:2] == ["::", "regclass"] or words[:4] == ["::", "pg_catalog", ".", "regclass"]


def _joined(words: Iterable[str]) -> str:
    """The words with spaces, but for the dot, the double colon and the dollar of a parameter, which bind."""
    parts: list[str] = []
    before = ""
    for word in words:
        is_bound = word in (".", "::", "(") or before in (".", "::", "$")
        parts.append(word if is_bound or not before else f" {word}")
        before = word
    return "".join(parts)
