"""Schemas as text: Spark's DDL (`"id bigint, at timestamp"`) to Arrow and back, without Spark.

The schema of a source is needed before any Java runs, so this parser is independent of Spark.  It knows the safe
types.  `timestamp` is an instant (microseconds, UTC), `timestamp_ntz` a wall-clock time.

Grammar:
    schema := field (',' field)*            field  := name [':'] type ['not' 'null'] ['comment' text]
    type   := word | 'decimal' ['(' n [',' n] ')']
              | 'array<' type '>' | 'map<' type ',' type '>' | 'struct<' field,* '>'
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

from state.errors import SchemaError

_TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_NAMES: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}
_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)*)`|'((?:[^'\\]|\\.)*)'|([A-Za-z_][A-Za-z_0-9]*)|(\d+)|([,:<>()]))")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def parse_schema(text: str) -> pa.Schema:
    """The Arrow schema of a DDL text.

    Args:
        text: columns separated by commas, as in `"id bigint, at timestamp, tags array<string>"`.

    Raises:
        SchemaError: the text cannot be read; the message names the column.

    Example:
        >>> parse_schema("id bigint, price decimal(10,2)").field("price").type
        Decimal128Type(decimal128(10, 2))
    """
    fields = _Parser(text).schema()
    names = [field.name for field in fields]
    for name, count in Counter(names).items():
        if count > 1:
            raise SchemaError(f"schema {text!r}: column {name!r} appears twice; rename one of them")
    return pa.schema(fields)


def format_schema(schema: pa.Schema) -> str:
    """The DDL text of an Arrow schema; `parse_schema` gives the schema back.

    Raises:
        SchemaError: a column has a type that is not safe.
    """
    return ", ".join(_format_field(field, " ", field.name) for field in schema)


class _Parser:
    """A recursive-descent parser of the grammar above, one method a rule."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._column = ""
        self._at = 0
        # The current token: its kind ("name", "quoted", "text", "number", "sign" or "end") and its text.
        self._kind = "end"
        self._token = ""
        self._advance()

    def schema(self) -> list[pa.Field]:
        if self._kind == "end":
            raise SchemaError("the schema is empty; name at least one column, as in 'id bigint'")
        fields = [self._field(outer="")]
        while self._accept(","):
            fields.append(self._field(outer=""))
        if self._kind != "end":
            raise self._error(f"expected ',' or the end, found {self._found}")
        return fields

    def _field(self, outer: str) -> pa.Field:
        if self._kind not in ("name", "quoted"):
            raise self._error(f"expected the name of a column, found {self._found}")
        name = self._take()
        self._column = f"{outer}.{name}" if outer else name
        self._accept(":")
        data_type = self._type(self._column)
        nullable = True
        if self._accept_word("not"):
            if not self._accept_word("null"):
                raise self._error("expected 'null' after 'not'")
            nullable = False
        if self._accept_word("comment"):
            if self._kind != "text":
                raise self._error("expected a text in single quotes after 'comment'")
            self._advance()
        return pa.field(name, data_type, nullable)

    def _type(self, column: str) -> pa.DataType:
        if self._kind != "name":
            raise self._error(f"expected a type, found {self._found}")
        word = self._take().lower()
        if word == "array":
            self._expect("<")
            item = self._type(column)
            self._expect(">")
            return pa.list_(item)
        if word == "map":
            self._expect("<")
            key = self._type(column)
            self._expect(",")
            value = self._type(column)
            self._expect(">")
            return pa.map_(key, value)
        if word == "struct":
            self._expect("<")
            fields = [self._field(column)]
            while self._accept(","):
                fields.append(self._field(column))
            self._expect(">")
            return pa.struct(fields)
        if word in ("decimal", "dec", "numeric"):
            return self._decimal()
        if word not in _TYPES:
            raise self._error(
                f"{word!r} is not a known type; use one of {', '.join(sorted(set(_NAMES.values())))}, "
                "decimal(p,s), array<...>, map<...,...>, struct<...>"
            )
        return _TYPES[word]

    def _decimal(self) -> pa.DataType:
        precision, scale = 10, 0
        if self._accept("("):
            precision = self._number()
            scale = self._number() if self._accept(",") else 0
            self._expect(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise self._error(
                f"decimal({precision},{scale}) does not exist; the precision is 1 to 38, the scale at most that"
            )
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        if self._kind != "number":
            raise self._error(f"expected a number, found {self._found}")
        return int(self._take())

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            rest = self._text[self._at :].strip()
            if rest:
                raise self._error(f"cannot read {rest[:20]!r}")
            self._kind, self._token = "end", ""
            return
        self._at = match.end()
        kinds = ("quoted", "text", "name", "number", "sign")
        self._kind = next(kind for kind, group in zip(kinds, match.groups(), strict=True) if group is not None)
        self._token = match.group(match.lastindex or 0).replace("``", "`")

    @property
    def _found(self) -> str:
        return "the end" if self._kind == "end" else repr(self._token)

    def _take(self) -> str:
        token = self._token
        self._advance()
        return token

    def _accept(self, sign: str) -> bool:
        if self._kind == "sign" and self._token == sign:
            self._advance()
            return True
        return False

    def _accept_word(self, word: str) -> bool:
        if self._kind == "name" and self._token.lower() == word:
            self._advance()
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self._error(f"expected {sign!r}, found {self._found}")

    def _error(self, what: str) -> SchemaError:
        place = f", column {self._column!r}" if self._column else ""
        return SchemaError(f"schema {self._text!r}{place}: {what}")


def quoted_name(name: str) -> str:
    """A column's name as Spark's SQL takes any name."""
    return "`" + name.replace("`", "``") + "`"


def _format_field(field: pa.Field, separator: str, column: str) -> str:
    name = field.name if _PLAIN_NAME.fullmatch(field.name) else quoted_name(field.name)
    return f"{name}{separator}{_format_type(field.type, column)}" + ("" if field.nullable else " not null")


def _format_type(data_type: pa.DataType, column: str) -> str:
    if pa.types.is_decimal128(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if pa.types.is_list(data_type):
        return f"array<{_format_type(data_type.value_type, column)}>"
    if pa.types.is_map(data_type):
        return f"map<{_format_type(data_type.key_type, column)},{_format_type(data_type.item_type, column)}>"
    if pa.types.is_struct(data_type):
        return f"struct<{','.join(_format_field(field, ':', f'{column}.{field.name}') for field in data_type)}>"
    if data_type not in _NAMES:
        raise SchemaError(
            f"column {column!r} has the type {data_type}, which cannot be carried to Spark; cast it before"
        )
    return _NAMES[data_type]
