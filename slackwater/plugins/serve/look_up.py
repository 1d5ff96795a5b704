"""Look-up of one group by its key: `SELECT a, b FROM view WHERE key = value`, which the index of the keys answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from slackwater.confinement.query_parser import ParsedQuery

_LONGEST = 2_000
_PLAIN: Mapping[str, Any] = {
    "type": "SELECT_NODE", "modifiers": [], "cte_map": {"map": []}, "group_expressions": [], "group_sets": [],
    "aggregate_handling": "STANDARD_HANDLING", "having": None, "sample": None, "qualify": None,
}  # fmt: skip
_STAR: Mapping[str, Any] = {
    "class": "STAR", "type": "STAR", "alias": "", "relation_name": "", "exclude_list": [], "replace_list": [],
    "columns": False, "expr": None, "qualified_exclude_list": [], "rename_list": [],
}  # fmt: skip
_VIEW: Mapping[str, Any] = {
    "type": "BASE_TABLE", "alias": "", "sample": None, "column_name_alias": [], "catalog_name": "", "at_clause": None,
}  # fmt: skip
_PLACES = ("query_location", "query_location_length")
_QUOTED = re.compile(r"'((?:[^']|'')*+)'")
_INTEGER = re.compile(r"CAST\('([^']*)' AS (?:BIGINT|INTEGER|SMALLINT)\)")
_DIGITS = re.compile(r"\s*(-?[0-9]+)\s*")


@dataclass(frozen=True)
class Operand:
    """The value of a key: a constant, or a parameter.

    Args:
        text: the text of a constant.
        is_text: True for a constant in quotes.
        parameter: the number of a parameter; 0 for a constant.
    """

    text: str = ""
    is_text: bool = False
    parameter: int = 0


@dataclass(frozen=True)
class LookUp:
    """A query that is a look-up if `values` has exactly the columns of the key of the view.

    Args:
        view: the name of the view.
        columns: the selected columns; empty for all.
        values: column → its value.
    """

    view: str
    columns: tuple[str, ...]
    values: Mapping[str, Operand]


def look_up_of(query: ParsedQuery) -> LookUp | None:
    """The look-up that a query is; None for any other query."""
    try:
        return _found(query) if len(query.text) <= _LONGEST else None
    except RecursionError:
        return None  # a look-up is not nested


@lru_cache(1_000)
def _found(query: ParsedQuery) -> LookUp | None:
    node = dict(query.loaded["node"])
    selected, table, condition = (node.pop(name, None) for name in ("select_list", "from_table", "where_clause"))
    if node != _PLAIN or condition is None:
        return None
    table = _without(table, "schema_name", "table_name", "qualified_name")
    if table != _VIEW:
        return None
    source = query.loaded["node"]["from_table"]
    if source["schema_name"] not in ("", "public"):
        return None
    is_all = [_without(each) for each in selected] == [_STAR]
    columns = [] if is_all else [_column(each) for each in selected]
    children = condition["children"] if condition.get("type") == "CONJUNCTION_AND" else [condition]
    values: dict[str, Operand] = {}
    for child in children:
        column = _column(child["left"]) if child.get("type") == "COMPARE_EQUAL" else None
        operand = _operand(child["right"]) if column else None
        if not column or operand is None or column in values:
            return None
        values[column] = operand
    if not all(columns):
        return None
    return LookUp(source["table_name"], tuple(str(each) for each in columns), values)


def _without(part: Any, *names: str) -> Any:
    return {name: value for name, value in part.items() if name not in (*_PLACES, *names)}


def _column(part: Any) -> str | None:
    names = part.get("column_names", ())
    is_plain = part.get("type") == "COLUMN_REF" and not part.get("alias") and len(names) == 1
    return str(names[0]) if is_plain else None


def _operand(part: Any) -> Operand | None:
    if part.get("type") == "VALUE_PARAMETER":
        return Operand(parameter=int(part["identifier"]))
    literal = part.get("literal", {}) if part.get("type") == "VALUE_CONSTANT" else {}
    if literal.get("kind") in ("STRING", "INTEGER"):
        return Operand(literal["text"], literal["kind"] == "STRING")
    return None


def key_value(operand: Operand, literals: Sequence[str], data_type: pa.DataType) -> str | int | None:
    """The value for a column of a key, if equality means the same to SQL and to the key; None otherwise.

    Args:
        operand: the value in the query.
        literals: the values of its parameters, as `literal` of value_types.py writes them.
        data_type: the type of the column.
    """
    text, is_text, is_integer = operand.text, operand.is_text, not operand.is_text
    if operand.parameter:
        if operand.parameter > len(literals):
            return None
        literal = literals[operand.parameter - 1]
        quoted, integer = _QUOTED.fullmatch(literal), _INTEGER.fullmatch(literal)
        found = quoted or integer
        if found is None:
            return None
        text, is_text, is_integer = found[1].replace("''", "'"), quoted is not None, integer is not None
    if pa.types.is_string(data_type):
        return text if is_text else None
    if not pa.types.is_integer(data_type) or not (is_text or is_integer):
        return None
    digits = _DIGITS.fullmatch(text) if len(text) < 40 else None
    if digits is None:
        return None
    is_signed = pa.types.is_signed_integer(data_type)
    bits, number = data_type.bit_width - is_signed, int(digits[1])
    return number if (-(2**bits) if is_signed else 0) <= number < 2**bits else None
