r"""Parser of queries, by DuckDB's own parser and its serialized tree.

`json_serialize_sql` returns the tree as JSON.  Names in it are read by expressions over the JSON text, since the tree
of a text of 1 MiB has some 25 MB.  That is exact: a quote inside a JSON string is `\"`, so `"key":"` occurs only where
the tree has that key.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

MOST_PARAMETERS = 65_535
_REMEMBERED, _LONGEST_REMEMBERED, _LONGEST_REASON = 1_000, 4_000, 1_000
_SERIALIZED = "SELECT tree, json_array_length(tree, '$.statements') FROM (SELECT json_serialize_sql($1) AS tree)"
_STRING = r'"((?:[^"\\]|\\.)*+)"'
_NODE = re.compile(r'"type":"(\w+_NODE)"')
_FUNCTION = re.compile(r'"function_name":' + _STRING)
_TABLE_FUNCTION = re.compile(r'"type":"TABLE_FUNCTION".*?"function_name":' + _STRING, re.DOTALL)
_TABLE = re.compile(r'"table_name":' + _STRING)
_PARAMETER = re.compile(
    r'"type":"VALUE_PARAMETER","alias":"(?:[^"\\]|\\.)*+","query_location":(\d+),"query_location_length":(\d+),'
    r'"identifier":' + _STRING
)
_LISTING = re.compile(
    r'"function_name":"(?:duckdb|pragma)_|"schema_name":"(?:information_schema|pg_catalog)"|'
    r'"table_name":"(?:\\"|__show|duckdb_|sqlite_|pg_)',
    re.IGNORECASE,
)
_READING_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
# These take addresses of memory, plan or run a text that is in a value, write a log, or sleep.
_REFUSED_FUNCTIONS = frozenset(
    {"arrow_scan", "arrow_scan_dumb", "pandas_scan", "python_arrow_scan", "python_map_function", "query", "query_table",
     "json_execute_serialized_sql", "json_serialize_plan", "write_log", "sleep_ms", "pg_sleep", "nextval", "currval",
     "setval", "slackwater_file_history"}
)  # fmt: skip
# Parts of DuckDB's own plans, which do not check their arguments.
_INTERNAL = "__internal_"
_TABLE_FUNCTIONS = frozenset(
    {"range", "generate_series", "repeat", "repeat_row", "unnest", "summary", "json_each", "json_tree", "histogram",
     "histogram_values", "test_all_types", "pg_timezone_names", "icu_calendar_names", "duckdb_columns",
     "duckdb_constraints", "duckdb_databases", "duckdb_dependencies", "duckdb_functions", "duckdb_indexes",
     "duckdb_keywords", "duckdb_memory", "duckdb_optimizers", "duckdb_schemas", "duckdb_sequences", "duckdb_settings",
     "duckdb_tables", "duckdb_types", "duckdb_variables", "duckdb_views", "pragma_collations", "pragma_show",
     "pragma_table_info", "pragma_version", "pragma_platform"}
)  # fmt: skip


class RefusedQueryError(Exception):
    """A text is not one SELECT that reads.

    Args:
        reason: `syntax`, `writes`, `function` or `parameters`.
        message: one line.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Parameter:
    """A parameter in a text.

    Args:
        number: its number, from 1.
        start: the first byte of it in the UTF-8 text.
        end: the byte behind it.
    """

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class ParsedQuery:
    """One SELECT.

    Args:
        tree: its tree, as JSON.
    """

    text: str
    tree: str

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, in the order of the text.

        Raises:
            RefusedQueryError: a parameter has a name, or a number above 65,535.
        """
        found = []
        encoded = self.text.encode()
        for start, length, name in _PARAMETER.findall(self.tree):
            first, end = int(start), int(start) + int(length)
            if not name.isdecimal() or not 0 < len(name) < 6 or not 0 < int(name) <= MOST_PARAMETERS:
                raise RefusedQueryError("parameters", f"there are at most {MOST_PARAMETERS:,} parameters, from $1")
            if encoded[first:end] != b"$" + name.encode():
                raise RefusedQueryError("parameters", "a parameter is written as $1")
            found.append(Parameter(int(name), first, end))
        return tuple(sorted(found, key=lambda each: each.start))

    @property
    def parameter_count(self) -> int:
        """The largest number of a parameter."""
        return max((each.number for each in self.parameters), default=0)

    @cached_property
    def tables(self) -> frozenset[str]:
        """The names of tables without their schemas, in small letters."""
        return frozenset(_unescaped(name).casefold() for name in _TABLE.findall(self.tree))

    @cached_property
    def lists_tables(self) -> bool:
        """True if the query lists tables: SHOW TABLES, or a catalog of DuckDB."""
        return _LISTING.search(self.tree) is not None

    def bound(self, literals: Sequence[str]) -> str:
        """The text with literals in place of its parameters; every number has a literal."""
        encoded, parts, at = self.text.encode(), [], 0
        for parameter in self.parameters:
            parts.append(encoded[at : parameter.start])
            # In brackets: `-$1` of -1 does not become a comment, and `$1::text` casts the whole value.
            parts.append(f"({literals[parameter.number - 1]})".encode())
            at = parameter.end
        return b"".join([*parts, encoded[at:]]).decode()

    @cached_property
    def loaded(self) -> Any:
        """The tree of the statement as Python values; only for short texts."""
        return json.loads(self.tree)["statements"][0]


class QueryParser:
    """DuckDB's parser.  Threads may share it.

    Args:
        connection: a confined DuckDB that nothing else uses.
        table_functions: functions that a query may call after FROM, in addition to `_TABLE_FUNCTIONS`.
    """

    def __init__(self, connection: Any, table_functions: frozenset[str] = frozenset()) -> None:
        self._connection = connection
        self._table_functions = _TABLE_FUNCTIONS | table_functions
        self._idle: list[Any] = []
        self._lock = threading.Lock()
        self._remembered = lru_cache(_REMEMBERED)(self._query)

    def query(self, text: str) -> ParsedQuery:
        """The one SELECT in a text.  Short texts are remembered, since clients repeat them.

        Raises:
            RefusedQueryError: the text is something else, or names a function that is not served.
            duckdb.Error: DuckDB fails.
        """
        return self._remembered(text) if len(text) <= _LONGEST_REMEMBERED else self._query(text)

    def _query(self, text: str) -> ParsedQuery:
        with self._lock:
            connection = self._idle.pop() if self._idle else self._connection.cursor()
        try:
            # `extract_statements` computes under Python's lock, but a query does not stop other threads.
            tree, count = connection.execute(_SERIALIZED, [text]).fetchone()
            if count is None:
                raise _refused(connection, text, json.loads(tree))
        finally:
            with self._lock:
                self._idle.append(connection)
        if count != 1:
            raise RefusedQueryError("syntax", "one statement is expected, " + ("none" if not count else "not several"))
        self._require_reading(tree)
        return ParsedQuery(text, tree)

    def _require_reading(self, tree: str) -> None:
        nodes = set(_NODE.findall(tree)) - _READING_NODES
        if nodes:
            kinds = ", ".join(sorted(each.partition("_")[0] for each in nodes))
            raise RefusedQueryError("writes", f"{kinds} is refused: only reading is allowed; use SELECT")
        names = {_unescaped(name).lower() for name in _FUNCTION.findall(tree)}
        scans = {_unescaped(name).lower() for name in _TABLE_FUNCTION.findall(tree)}
        refused = {name for name in names if name in _REFUSED_FUNCTIONS or name.startswith(_INTERNAL)}
        for name in sorted(refused | (scans - self._table_functions)):
            raise RefusedQueryError("function", f"the function {name} is not served")


def _refused(connection: Any, text: str, answer: Any) -> RefusedQueryError:
    reason = " ".join(str(answer.get("error_message", "")).split())
    if answer.get("error_type") != "not implemented":
        return RefusedQueryError("syntax", f"Parser Error: {reason}"[:_LONGEST_REASON])
    kinds = {_kind(each) for each in connection.extract_statements(text)} - {"SELECT"}
    return RefusedQueryError("writes", f"{', '.join(sorted(kinds))} is refused: only reading is allowed; use SELECT")


def _kind(statement: Any) -> str:
    try:
        return str(statement.type.name)
    except ValueError:  # DuckDB's Python module does not know all kinds of DuckDB
        return "the statement"


def _unescaped(name: str) -> str:
    return str(json.loads(f'"{name}"')) if "\\" in name else name
