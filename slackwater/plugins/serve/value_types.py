"""Types and values: Arrow's to PostgreSQL's, as text and in binary.

The numbers of the types: https://github.com/postgres/postgres/blob/master/src/include/catalog/pg_type.dat
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.plugins.serve.messages import BINARY
from slackwater.plugins.serve.sql_error import NOT_SERVED, SqlError

Encoded: TypeAlias = Sequence[bytes | None]
_Encoder: TypeAlias = Callable[[Any], bytes]

_DAYS_TO_2000 = date(2000, 1, 1).toordinal() - date(1970, 1, 1).toordinal()
_US_TO_2000 = _DAYS_TO_2000 * 86_400_000_000
_UNIX = datetime(1970, 1, 1)  # noqa: DTZ001  # arithmetic without zones
_INFINITE = {32: 2**31 - 1, 64: 2**63 - 1}


@dataclass(frozen=True)
class PgType:
    """A type of PostgreSQL.

    Args:
        name: its name in `pg_type`.
        size: bytes of a value; -1 for any.
        category: the letter of its kind, as in `pg_type`.
        array: the number of the type of its arrays.
        sql: its name in DuckDB.
    """

    oid: int
    name: str
    size: int
    category: str
    array: int
    sql: str


BOOL = PgType(16, "bool", 1, "B", 1000, "BOOLEAN")
BYTEA = PgType(17, "bytea", -1, "U", 1001, "BLOB")
INT8 = PgType(20, "int8", 8, "N", 1016, "BIGINT")
INT2 = PgType(21, "int2", 2, "N", 1005, "SMALLINT")
INT4 = PgType(23, "int4", 4, "N", 1007, "INTEGER")
TEXT = PgType(25, "text", -1, "S", 1009, "VARCHAR")
OID = PgType(26, "oid", 4, "N", 1028, "UINTEGER")
JSON = PgType(114, "json", -1, "U", 199, "VARCHAR")
FLOAT4 = PgType(700, "float4", 4, "N", 1021, "REAL")
FLOAT8 = PgType(701, "float8", 8, "N", 1022, "DOUBLE")
UNKNOWN = PgType(705, "unknown", -2, "X", 0, "VARCHAR")
BPCHAR = PgType(1042, "bpchar", -1, "S", 1014, "VARCHAR")
VARCHAR = PgType(1043, "varchar", -1, "S", 1015, "VARCHAR")
DATE = PgType(1082, "date", 4, "D", 1182, "DATE")
TIME = PgType(1083, "time", 8, "D", 1183, "TIME")
TIMESTAMP = PgType(1114, "timestamp", 8, "D", 1115, "TIMESTAMP")
TIMESTAMPTZ = PgType(1184, "timestamptz", 8, "D", 1185, "TIMESTAMPTZ")
INTERVAL = PgType(1186, "interval", 16, "T", 1187, "INTERVAL")
NUMERIC = PgType(1700, "numeric", -1, "N", 1231, "DECIMAL")
UUID = PgType(2950, "uuid", 16, "U", 2951, "UUID")
NAME = PgType(19, "name", 64, "S", 1003, "VARCHAR")
SCALARS = (
    BOOL, BYTEA, NAME, INT8, INT2, INT4, TEXT, OID, JSON, FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR, DATE, TIME,
    TIMESTAMP, TIMESTAMPTZ, INTERVAL, NUMERIC, UUID,
)  # fmt: skip
ARRAYS = tuple(PgType(each.array, f"_{each.name}", -1, "A", 0, f"{each.sql}[]") for each in SCALARS if each.array)
_BY_OID = {each.oid: each for each in (*SCALARS, *ARRAYS)}
_ARRAY_OF = {each.oid: array for each, array in zip((e for e in SCALARS if e.array), ARRAYS, strict=True)}
_BY_ARROW: dict[pa.DataType, PgType] = {
    pa.bool_(): BOOL,
    pa.int8(): INT2,
    pa.uint8(): INT2,
    pa.int16(): INT2,
    pa.uint16(): INT4,
    pa.int32(): INT4,
    pa.uint32(): INT8,
    pa.int64(): INT8,
    pa.uint64(): NUMERIC,
    pa.float16(): FLOAT4,
    pa.float32(): FLOAT4,
    pa.float64(): FLOAT8,
    pa.date32(): DATE,
    pa.date64(): DATE,
    pa.month_day_nano_interval(): INTERVAL,
}


def type_of(data_type: pa.DataType) -> PgType:
    """The PostgreSQL type of an Arrow type; JSON or text if PostgreSQL has no equal type."""
    known = _BY_ARROW.get(data_type)
    if known is not None:
        return known
    if pa.types.is_dictionary(data_type):
        return type_of(data_type.value_type)
    if pa.types.is_timestamp(data_type):
        return TIMESTAMP if data_type.tz is None else TIMESTAMPTZ
    if pa.types.is_decimal(data_type):
        return NUMERIC
    if pa.types.is_time(data_type):
        return TIME
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type) or pa.types.is_fixed_size_binary(data_type):
        return BYTEA
    if _is_list(data_type):
        element = type_of(data_type.value_type)
        return _ARRAY_OF[element.oid] if element.oid in _ARRAY_OF and element is not JSON else JSON
    if pa.types.is_nested(data_type):
        return JSON
    return TEXT


def modifier_of(data_type: pa.DataType) -> int:
    """The details of a type: precision and scale of a decimal; -1 for none."""
    if pa.types.is_decimal(data_type):
        return int((data_type.precision << 16) | data_type.scale) + 4
    return -1


def encoded(column: pa.Array, format: int) -> Encoded:
    """The values of a column as they are sent; None for null.

    Args:
        column: values of one type.
        format: `TEXT` or `BINARY`.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = type_of(column.type)
    encode = _encoder(kind, column.type, format == BINARY)
    return [None if value is None else encode(value) for value in _plain(column, kind)]


def _plain(column: pa.Array, kind: PgType) -> list[Any]:
    """Python's values; days and microseconds as numbers, since DuckDB's may be infinite."""
    if kind is DATE:
        return column.cast(pa.date32()).cast(pa.int32()).to_pylist()  # type: ignore[no-any-return]
    if kind in (TIMESTAMP, TIMESTAMPTZ):
        whole = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        return whole.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if kind is TIME:
        return pc.cast(column, pa.time64("us"), safe=False).cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


def _encoder(kind: PgType, data_type: pa.DataType, is_binary: bool) -> _Encoder:
    if kind.category == "A":
        element = type_of(data_type.value_type)
        each = _encoder(element, data_type.value_type, is_binary)
        values = _plain_list(data_type.value_type, element)
        if is_binary:
            return lambda value: _binary_array(element.oid, [None if v is None else each(v) for v in values(value)])
        return lambda value: _text_array([None if v is None else each(v) for v in values(value)])
    return (_BINARY if is_binary else _TEXT).get(kind.oid, _text)


def _plain_list(data_type: pa.DataType, kind: PgType) -> Callable[[list[Any]], list[Any]]:
    if kind in (DATE, TIME, TIMESTAMP, TIMESTAMPTZ):
        return lambda value: _plain(pa.array(value, data_type), kind)
    return lambda value: value


def _is_list(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type)
    )


# ---- text ------------------------------------------------------------------------------------------------------------


def _text(value: Any) -> bytes:
    return str(value).encode("utf-8", "surrogatepass")


def _float_text(value: float) -> bytes:
    if math.isfinite(value):
        return repr(int(value)).encode() if value.is_integer() and abs(value) < 1e15 else repr(value).encode()
    return b"NaN" if math.isnan(value) else b"Infinity" if value > 0 else b"-Infinity"


def _float4_text(value: float) -> bytes:
    # The shortest text that is the same number in 32 bits.
    short = next(
        text for digits in (6, 7, 8, 9) if _as_float4(float(text := f"{value:.{digits}g}")) == value or digits == 9
    )
    return _float_text(float(short))


def _as_float4(value: float) -> float:
    try:
        return float(struct.unpack("!f", struct.pack("!f", value))[0])
    except OverflowError:
        return math.inf


def _moment(days: int, microseconds: int) -> str | None:
    """A date and a time as text; a year before 1 has the letters BC; None if the calendar does not have it."""
    try:
        return (_UNIX + timedelta(days=days, microseconds=microseconds)).isoformat(" ")
    except OverflowError:
        return None


def _date_text(days: int) -> bytes:
    if abs(days) == _INFINITE[32]:
        return b"infinity" if days > 0 else b"-infinity"
    text = _moment(days, 0)
    if text is None:
        raise SqlError("22008", f"the date {days} days after 1970 is not in the years 1 to 9999: cast it to text")
    return text[:10].encode()


def _timestamp_text(microseconds: int, zone: str = "") -> bytes:
    if abs(microseconds) == _INFINITE[64]:
        return b"infinity" if microseconds > 0 else b"-infinity"
    text = _moment(0, microseconds)
    if text is None:
        raise SqlError("22008", "a time is not in the years 1 to 9999: cast it to text")
    return f"{text.rstrip('0') if '.' in text else text}{zone}".encode()


def _time_text(microseconds: int) -> bytes:
    text = str(_moment(0, microseconds))[11:] if microseconds < 86_400_000_000 else "24:00:00"
    return (text.rstrip("0") if "." in text else text).encode()


def _interval_text(value: Any) -> bytes:
    years, months = divmod(abs(value.months), 12)
    sign = -1 if value.months < 0 else 1
    parts = [f"{sign * years} years"] * bool(years) + [f"{sign * months} mons"] * bool(months)
    parts += [f"{value.days} days"] * bool(value.days)
    microseconds = value.nanoseconds // 1000
    if microseconds or not parts:
        seconds, rest = divmod(abs(microseconds), 1_000_000)
        fraction = f".{rest:06}".rstrip("0") if rest else ""
        parts.append(
            f"{'-' if microseconds < 0 else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"
        )
    return " ".join(parts).encode()


def _json_text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, default=_json_default).encode("utf-8", "surrogatepass")


def _json_default(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else str(value)


def _decimal_text(value: Any) -> bytes:
    return format(value, "f").encode() if isinstance(value, Decimal) else str(value).encode()


def _text_array(values: Sequence[bytes | None]) -> bytes:
    parts = []
    for value in values:
        if value is None:
            parts.append(b"NULL")
        elif value and not any(c in b'{},"\\ \t\n\r\v\f' for c in value) and value.upper() != b"NULL":
            parts.append(value)
        else:
            parts.append(b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"')
    return b"{" + b",".join(parts) + b"}"


_TEXT: dict[int, _Encoder] = {
    BOOL.oid: lambda value: b"t" if value else b"f",
    BYTEA.oid: lambda value: b"\\x" + value.hex().encode(),
    FLOAT4.oid: _float4_text,
    FLOAT8.oid: _float_text,
    DATE.oid: _date_text,
    TIME.oid: _time_text,
    TIMESTAMP.oid: _timestamp_text,
    TIMESTAMPTZ.oid: lambda value: _timestamp_text(value, "+00"),
    INTERVAL.oid: _interval_text,
    NUMERIC.oid: _decimal_text,
    JSON.oid: _json_text,
}

# ---- binary ----------------------------------------------------------------------------------------------------------


def _packed(layout: str) -> _Encoder:
    return struct.Struct(layout).pack


def _date_binary(days: int) -> bytes:
    if abs(days) == _INFINITE[32]:
        return struct.pack("!i", days if days > 0 else -(2**31))
    return struct.pack("!i", days - _DAYS_TO_2000)


def _timestamp_binary(microseconds: int) -> bytes:
    if abs(microseconds) == _INFINITE[64]:
        return struct.pack("!q", microseconds if microseconds > 0 else -(2**63))
    return struct.pack("!q", microseconds - _US_TO_2000)


def _numeric_binary(value: Decimal | int) -> bytes:
    """Digits to the base 10,000, the weight of the first, the sign, and the number of decimals."""
    sign, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)  # neither NaN nor infinite: Arrow has none
    scale = max(0, -exponent)
    text = "".join(map(str, digits)) + "0" * max(0, exponent)
    whole, fraction = (text[:-scale], text[-scale:].rjust(scale, "0")) if scale else (text, "")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [int((whole + fraction)[at : at + 4]) for at in range(0, len(whole + fraction), 4)]
    weight = len(whole) // 4 - 1
    while groups and not groups[0]:
        groups.pop(0)
        weight -= 1
    while groups and not groups[-1]:
        groups.pop()
    return struct.pack(
        f"!HhHH{len(groups)}H", len(groups), weight if groups else 0, 0x4000 if sign and groups else 0, scale, *groups
    )


def _binary_array(oid: int, values: Sequence[bytes | None]) -> bytes:
    if not values:
        return struct.pack("!iiI", 0, 0, oid)
    has_null = any(value is None for value in values)
    parts = [struct.pack("!iiIii", 1, has_null, oid, len(values), 1)]
    for value in values:
        parts.append(b"\xff\xff\xff\xff" if value is None else struct.pack("!i", len(value)) + value)
    return b"".join(parts)


_BINARY: dict[int, _Encoder] = {
    BOOL.oid: lambda value: b"\1" if value else b"\0",
    BYTEA.oid: bytes,
    INT2.oid: _packed("!h"),
    INT4.oid: _packed("!i"),
    INT8.oid: _packed("!q"),
    OID.oid: _packed("!I"),
    FLOAT4.oid: _packed("!f"),
    FLOAT8.oid: _packed("!d"),
    DATE.oid: _date_binary,
    TIME.oid: _packed("!q"),
    TIMESTAMP.oid: _timestamp_binary,
    TIMESTAMPTZ.oid: _timestamp_binary,
    INTERVAL.oid: lambda value: struct.pack("!qii", value.nanoseconds // 1000, value.days, value.months),
    NUMERIC.oid: _numeric_binary,
    JSON.oid: _json_text,
}

# ---- parameters ------------------------------------------------------------------------------------------------------


def literal(oid: int, value: bytes | None, format: int) -> str:
    """A parameter as a literal of SQL.  One without a type is a text in quotes, which takes on the type it is used as.

    Args:
        oid: the type that the client gave; 0 for none.
        value: the bytes; None for null.
        format: `TEXT` or `BINARY`.

    Raises:
        SqlError: the type is not served, or the value is not one of it.
    """
    kind = _BY_OID.get(oid, UNKNOWN)
    is_untyped = kind in (UNKNOWN, TEXT, VARCHAR, BPCHAR, NAME)
    if value is None:
        return "NULL" if is_untyped else f"CAST(NULL AS {kind.sql})"
    text = _binary_text(kind, value) if format == BINARY else _utf8(value)
    if kind is NUMERIC:
        return f"CAST({quoted(text)} AS {_decimal_type(text)})"
    if kind is BYTEA:
        return f"from_hex({quoted(text.removeprefix(chr(92) + 'x'))})"
    if kind.category == "A" and format != BINARY:
        text = _list_text(text)
    return quoted(text) if is_untyped else f"CAST({quoted(text)} AS {kind.sql})"


def quoted(text: str) -> str:
    """A text as a literal of SQL.

    Raises:
        SqlError: it has the character 0, which PostgreSQL's text cannot have.
    """
    if "\0" in text:
        raise SqlError("22021", "a text has the character 0: leave it out")
    return "'" + text.replace("'", "''") + "'"


def _utf8(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise SqlError("22021", "a parameter is not UTF-8: set client_encoding to UTF8") from None


def _binary_text(kind: PgType, value: bytes) -> str:
    if kind.category == "A" or (kind.oid not in _DECODERS and kind.category not in "SX"):
        raise SqlError(NOT_SERVED, f"binary parameters of type {kind.name} are not served: send it as text")
    decode = _DECODERS.get(kind.oid, _utf8)
    try:
        return str(decode(value))
    except (struct.error, OverflowError):
        raise SqlError("22P03", f"a binary parameter is no {kind.name}") from None


def _unpacked(layout: str) -> Callable[[bytes], Any]:
    return lambda value: struct.unpack(layout, value)[0]


def _of_timestamp(value: bytes) -> str:
    return _timestamp_text(int(struct.unpack("!q", value)[0]) + _US_TO_2000).decode()


def _of_numeric(value: bytes) -> str:
    count, weight, sign, scale = struct.unpack("!HhHH", value[:8])
    groups = struct.unpack(f"!{count}H", value[8:])
    if sign not in (0, 0x4000):
        raise SqlError("22003", "NaN and infinity are no decimals: send a number")
    number = sum((Decimal(group).scaleb(4 * (weight - at)) for at, group in enumerate(groups)), Decimal(0))
    return f"{'-' if sign else ''}{number:.{scale}f}"


def _of_interval(value: bytes) -> str:
    microseconds, days, months = struct.unpack("!qii", value)
    return f"{months} months {days} days {microseconds} microseconds"


_DECODERS: dict[int, Callable[[bytes], Any]] = {
    BOOL.oid: lambda value: bool(value[0]) if value else False,
    BYTEA.oid: bytes.hex,
    INT2.oid: _unpacked("!h"),
    INT4.oid: _unpacked("!i"),
    INT8.oid: _unpacked("!q"),
    OID.oid: _unpacked("!I"),
    FLOAT4.oid: _unpacked("!f"),
    FLOAT8.oid: _unpacked("!d"),
    DATE.oid: lambda value: _date_text(struct.unpack("!i", value)[0] + _DAYS_TO_2000).decode(),
    TIME.oid: lambda value: _time_text(struct.unpack("!q", value)[0]).decode(),
    TIMESTAMP.oid: _of_timestamp,
    TIMESTAMPTZ.oid: lambda value: _of_timestamp(value) + "+00",
    INTERVAL.oid: _of_interval,
    NUMERIC.oid: _of_numeric,
    UUID.oid: bytes.hex,
}


def _decimal_type(text: str) -> str:
    """The narrowest decimal of DuckDB that holds a number; DOUBLE if none does."""
    try:
        _, digits, exponent = Decimal(text).as_tuple()
    except ArithmeticError:
        raise SqlError("22P02", "invalid number in a parameter of type numeric") from None
    if not isinstance(exponent, int):
        return "DOUBLE"  # NaN or infinity
    scale = max(0, -exponent)
    width = max(len(digits) + max(0, exponent), scale)
    return f"DECIMAL({width}, {scale})" if width <= 38 else "DOUBLE"


def _list_text(text: str) -> str:
    """`{1,2}` as DuckDB writes a list: `[1,2]`; without nested ones."""
    if not (text.startswith("{") and text.endswith("}")):
        raise SqlError("22P02", "a parameter of an array type is no array: write {1,2}")
    return f"[{text[1:-1]}]"
