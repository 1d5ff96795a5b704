r"""Catalog for tools: `pg_catalog` and `information_schema` over the schemas of an epoch, in a DuckDB without rows.

Clients ask it for the names and types of relations: psql for `\d`, drivers and dashboards for their lists.  DuckDB has
a part of `pg_catalog`, with numbers of its own for types; here the tables have PostgreSQL's numbers and columns.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping

import pyarrow as pa

from slackwater.reading.snapshot_sql import CONFINED
from slackwater.serving.catalog_tables import CATALOG_SCHEMA, DATABASE, MACROS, TYPES, catalog_tables
from slackwater.serving.engine import Interruption, Rows
from slackwater.serving.sql_text import Token, pieces

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


def is_for_tools(text: str, views: Iterable[str]) -> bool:
    """True for a question about the schemas: it names the catalog, or a function about the session, and no view."""
    words = pieces(text)
    if not any(word.kind in ("word", "quoted") and _is_name(word.value.lower()) for word in words):
        return False
    known = {view.casefold() for view in views}
    return not any(_is_relation(words, at) and word.value.casefold() in known for at, word in enumerate(words))


def _is_name(word: str) -> bool:
    return word in _NAMES or (word.startswith("pg_") and word != "pg_typeof")


def _is_relation(words: tuple[Token, ...], at: int) -> bool:
    before = words[at - 1].upper if at else ""
    if before == "." and at >= 3 and words[at - 2].value == "public":
        before = words[at - 3].upper
    return before in ("FROM", "JOIN")


class CatalogDatabase:
    """A DuckDB with the catalog of some relations.

    Args:
        schemas: name of a relation → its columns.
    """

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._lock = threading.Lock()
        run = self._connection.execute
        run(f"SET memory_limit = '{_MEMORY_BYTES // 1024}KiB'; ATTACH ':memory:' AS {DATABASE}; USE {DATABASE}")
        run(f"CREATE SCHEMA {CATALOG_SCHEMA}; CREATE SCHEMA tool_information; CREATE SCHEMA public")
        run(f"SET search_path = '{DATABASE}.{CATALOG_SCHEMA},{DATABASE}.public'")
        for name, table in catalog_tables(schemas).items():
            self._connection.register("made", table)
            run(f"CREATE TABLE {DATABASE}.{name} AS FROM made")
            self._connection.unregister("made")
        for name, duckdb_type in TYPES.items():
            run(f"CREATE TYPE {DATABASE}.{CATALOG_SCHEMA}.{name} AS {duckdb_type}")
        for macro in MACROS:
            run(f"CREATE MACRO {DATABASE}.{CATALOG_SCHEMA}.{macro}")
        run(CONFINED)

    def ask(self, text: str, interruption: Interruption) -> Rows:
        """The rows of a question of a tool.

        Raises:
            SqlError: as `Rows`.
        """
        with self._lock:
            cursor = self._connection.cursor()
        cursor.execute(f"USE {DATABASE}.{CATALOG_SCHEMA}")
        rows = Rows(cursor, for_duckdb(text), {}, interruption)
        names = [_CALL.fullmatch(name) for name in rows.schema.names]
        # PostgreSQL names the column of a call by its function, and drivers look for that.
        shown = [found[1] if found else name for found, name in zip(names, rows.schema.names, strict=True)]
        rows.schema = pa.schema([field.with_name(name) for field, name in zip(rows.schema, shown, strict=True)])
        return rows

    def close(self) -> None:
        """Ends its DuckDB."""
        self._connection.close()


def for_duckdb(text: str) -> str:
    """A question of a tool in DuckDB's dialect: without PostgreSQL's own types, operators and collations."""
    words = pieces(text)
    out: list[str] = []
    at = 0
    while at < len(words):
        here, following = words[at], [word.value.lower() for word in words[at + 1 : at + 6]]
        name = here.value.lower() if here.kind in ("word", "quoted") else here.text
        if here.upper == "OPERATOR" and following[:2] == ["(", "pg_catalog"]:
            end = next(step for step in range(at, len(words)) if words[step].text == ")")
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
    """The words with spaces, but for the dot and the double colon, which bind."""
    text = ""
    for word in words:
        is_bound = word in (".", "::") or text.endswith((".", "::")) or word == "("
        text += word if is_bound or not text else f" {word}"
    return text
