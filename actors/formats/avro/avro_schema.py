"""The plan of an Avro schema: what fastavro decodes, what Arrow makes of it, and the columns of the file.

fastavro gets a schema of the same bytes with simpler types: text as bytes, an enumeration as the number of its symbol,
a map as a list of pairs, a logical type as the type below it, and a union of several types as records of one field,
which tell them apart.  Their columns become those of the file in Arrow, a column at a time.

A name that is used again is written out again, so a schema of a few lines may have billions of columns, or no end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.types as kinds
from fastavro.schema import SchemaParseException

from actors.file_errors import UnreadableFile, one_line
from actors.formats.avro import columns as made
from actors.formats.avro.columns import Make
from actors.settings import ReadLimits

_KEPT_SCHEMA_BYTES = 64 * 1024
_MOST_PRECISION = 76
_REFERENCE_BYTES = 8
_DICT_BYTES, _FIELD_BYTES, _LIST_BYTES = 120, 60, 64


@dataclass(frozen=True)
class AvroType:
    """A type of a schema.

    Args:
        encoded: the type that fastavro decodes.
        decoded: the type in Arrow of what fastavro decodes.
        kind: the type of the column in Arrow.
        make: makes the column of what was decoded.
        least_bytes: the fewest bytes of a value in the file.
        python_bytes: about the most bytes of a value in Python, without long texts and repeated values.
        unfolds: the bytes in Python for each byte of repeated values; 0 if none are repeated.
    """

    encoded: Any
    decoded: pa.DataType
    kind: pa.DataType
    make: Make = made.unchanged
    least_bytes: int = 1
    python_bytes: int = 40
    unfolds: int = 0


@dataclass(frozen=True)
class AvroPlan:
    """The plan of reading the records of a schema.

    Args:
        schema: the columns of the file.
        encoded: the schema that fastavro decodes; its fields are named by their numbers.
        columns: the types of the columns.
        row: the type of the whole record.
    """

    schema: pa.Schema
    encoded: Any
    columns: Sequence[AvroType]
    row: AvroType

    def table(self, records: list[Any], names: Sequence[str]) -> pa.Table:
        """Some columns of decoded records; errors of Arrow say that a value is none of its type."""
        numbers = [self.schema.get_field_index(name) for name in names]
        wanted = pa.struct([(_field(number), self.columns[number].decoded) for number in numbers])
        rows = pa.array(records, wanted)
        arrays = [self.columns[number].make(rows.field(at)) for at, number in enumerate(numbers)]
        return pa.Table.from_arrays(arrays, schema=pa.schema([self.schema.field(number) for number in numbers]))


def plan_of(schema: bytes, limits: ReadLimits) -> AvroPlan:
    """The plan of a schema, as the header of a file has it.

    Raises:
        UnreadableFile: it is no schema of records, has no end, or exceeds a limit.
    """
    make = _kept_plan if len(schema) <= _KEPT_SCHEMA_BYTES else _made_plan
    return make(schema, limits)


def _made_plan(text: bytes, limits: ReadLimits) -> AvroPlan:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = f"its schema is not JSON: {one_line(error)}"
    else:
        row = _Planner(limits).record(schema)
        columns = row.columns
        try:
            encoded = fastavro.parse_schema(row.encoded)
        except SchemaParseException as error:
            reason = f"its schema cannot be read: {one_line(error)}"
        else:
            return AvroPlan(pa.schema(row.fields), encoded, columns, row)
    raise UnreadableFile(reason)


_kept_plan = lru_cache(maxsize=64)(_made_plan)


@dataclass(frozen=True)
class _Record(AvroType):
    """A record.

    Args:
        fields: its fields in Arrow.
    """

    fields: tuple[pa.Field, ...] = ()
    columns: tuple[AvroType, ...] = ()


class _Planner:
    """Makes the types of one schema."""

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self._named: dict[str, tuple[Mapping[str, Any], str]] = {}
        self._open: list[str] = []
        self._num_columns = self._num_types = 0

    def record(self, schema: Any) -> _Record:
        """The type of a whole file."""
        found = self._type(schema, "", 0)
        if not isinstance(found, _Record):
            raise UnreadableFile(f"its schema is {_shown(schema)}, and not that of a record")
        return found

    def _type(self, schema: Any, namespace: str, depth: int) -> AvroType:
        if depth > self._limits.max_nesting:
            raise UnreadableFile(f"its schema has more than {self._limits.max_nesting} levels (ReadLimits.max_nesting)")
        if isinstance(schema, list):
            return self._union(schema, namespace, depth)
        if isinstance(schema, str):
            return self._simple({"type": schema}, schema, namespace, depth)
        if not isinstance(schema, dict):
            raise UnreadableFile(f"its schema has {_shown(schema)} in the place of a type")
        name = schema.get("type")
        if isinstance(name, (list, dict)):
            return self._type(name, namespace, depth + 1)
        if name in ("record", "error"):
            return self._record(schema, namespace, depth)
        if name in ("enum", "fixed"):
            self._define(schema, namespace)
            return self._counted(self._enum(schema) if name == "enum" else self._fixed(schema))
        if name == "array":
            return self._list(self._type(schema.get("items"), namespace, depth + 1))
        if name == "map":
            return self._map(self._type(schema.get("values"), namespace, depth + 1))
        if not isinstance(name, str):
            raise UnreadableFile(f"its schema has {_shown(schema)} in the place of a type")
        return self._simple(schema, name, namespace, depth)

    def _simple(self, schema: Mapping[str, Any], name: str, namespace: str, depth: int) -> AvroType:
        if name in _PLAIN:
            logical = _logical(schema, name)
            return self._counted(_PLAIN[name] if logical is None else logical)
        # A name without dots is looked for in the namespace first.
        full = next((each for each in (f"{namespace}.{name}", name) if each in self._named), None)
        if full is None:
            raise UnreadableFile(f"its schema uses {_shown(name)}, which it does not define")
        definition, within = self._named[full]
        if full in self._open:
            raise UnreadableFile(f"its schema has no end: {_shown(full)} contains itself")
        return self._type(definition, within, depth)

    def _define(self, schema: Mapping[str, Any], namespace: str) -> tuple[str, str]:
        """The full name of a definition, and the namespace within it."""
        name = schema.get("name")
        own = schema.get("namespace", namespace)
        if not isinstance(name, str) or not name or not isinstance(own, str):
            raise UnreadableFile(f"its schema has a {schema['type']} without a name")
        full = name if "." in name or not own else f"{own}.{name}"
        # A definition is looked at again wherever its name is used.
        if self._named.setdefault(full, (schema, namespace))[0] is not schema:
            raise UnreadableFile(f"its schema defines {_shown(full)} twice")
        return full, full.rpartition(".")[0]

    def _record(self, schema: Mapping[str, Any], namespace: str, depth: int) -> _Record:
        full, within = self._define(schema, namespace)
        found = schema.get("fields")
        if not isinstance(found, list):
            raise UnreadableFile(f"its schema has the record {_shown(full)} without fields")
        self._open.append(full)
        names: dict[str, AvroType] = {}
        for field in found:
            name = field.get("name") if isinstance(field, dict) else None
            if not isinstance(name, str):
                raise UnreadableFile(f"its schema has a field of {_shown(full)} without a name")
            if name in names:
                raise UnreadableFile(f"its schema has the field {_shown(name)} of {_shown(full)} twice")
            names[name] = self._type(field.get("type"), within, depth + 1)
        self._open.pop()
        if not names:
            self._count()
        return self._struct(list(names), list(names.values()))

    def _struct(self, names: list[str], types: list[AvroType]) -> _Record:
        fields = tuple(pa.field(name, each.kind) for name, each in zip(names, types, strict=True))
        encoded = [{"name": _field(number), "type": each.encoded} for number, each in enumerate(types)]
        return _Record(
            {"type": "record", "name": self._name(), "fields": encoded},
            pa.struct([(_field(number), each.decoded) for number, each in enumerate(types)]),
            pa.struct(fields),
            made.struct(fields, [each.make for each in types]),
            sum(each.least_bytes for each in types),
            _DICT_BYTES + sum(_FIELD_BYTES + each.python_bytes for each in types),
            max((each.unfolds for each in types), default=0),
            fields,
            tuple(types),
        )

    def _union(self, schema: list[Any], namespace: str, depth: int) -> AvroType:
        branches = [self._branch(each, namespace, depth + 1) for each in schema]
        values = [each for each in branches if not kinds.is_null(each.kind)]
        if not branches:
            raise UnreadableFile("its schema has a union of no types")
        least = 1 + min(each.least_bytes for each in branches)
        most = max(each.python_bytes for each in branches)
        unfolds = max(each.unfolds for each in branches)
        if not values:
            return AvroType([each.encoded for each in branches], pa.null(), pa.null(), made.unchanged, least, most)
        widest = max((each.kind for each in values), key=lambda kind: _WIDTHS.get(kind, 0))
        if len(values) == 1 or {each.kind for each in values} <= _ALIKE.get(widest, set()):
            one = max(values, key=lambda each: _WIDTHS.get(each.kind, 0))
            encoded = [each.encoded for each in branches]
            return AvroType(encoded, one.decoded, one.kind, one.make, least, most, unfolds)
        # As in Spark: a struct with a field for each type, of which one has a value.
        names = [f"member{number}" for number in range(len(values))]
        fields = tuple(pa.field(name, each.kind) for name, each in zip(names, values, strict=True))
        decoded = pa.struct([(name, each.decoded) for name, each in zip(names, values, strict=True)])
        number = iter(names)
        encoded = [
            each.encoded
            if kinds.is_null(each.kind)
            else {
                "type": "record",
                "name": self._name(),
                "fields": [{"name": next(number), "type": each.encoded}],
            }
            for each in branches
        ]
        make = made.struct(fields, [each.make for each in values])
        return AvroType(encoded, decoded, pa.struct(fields), make, least, _DICT_BYTES + _FIELD_BYTES + most, unfolds)

    def _branch(self, schema: Any, namespace: str, depth: int) -> AvroType:
        if isinstance(schema, list):
            raise UnreadableFile("its schema has a union directly within a union")
        return self._type(schema, namespace, depth)

    def _list(self, item: AvroType) -> AvroType:
        if not item.least_bytes:
            # Of values without bytes a list may have any number, and none of them is there.
            raise UnreadableFile(f"its schema has lists of {item.kind}, whose values take no bytes")
        unfolds = max(item.unfolds, -(-(item.python_bytes + _REFERENCE_BYTES) // item.least_bytes))
        return AvroType(
            {"type": "array", "items": item.encoded},
            pa.list_(item.decoded),
            pa.list_(item.kind),
            made.lists(item.kind, item.make),
            1,
            _LIST_BYTES,
            unfolds,
        )

    def _map(self, value: AvroType) -> AvroType:
        pair = self._struct(["key", "value"], [_PLAIN["string"], value])
        pairs = self._list(pair)
        kind = pa.map_(pa.string(), value.kind)
        return AvroType(pairs.encoded, pairs.decoded, kind, made.maps(kind, value.make), 1, _LIST_BYTES, pairs.unfolds)

    def _enum(self, schema: Mapping[str, Any]) -> AvroType:
        symbols = schema.get("symbols")
        if not isinstance(symbols, list) or not symbols or not all(isinstance(each, str) for each in symbols):
            raise UnreadableFile(f"its schema has the enumeration {_shown(schema.get('name'))} without symbols")
        return AvroType("int", pa.int32(), pa.dictionary(pa.int32(), pa.string()), made.symbols(symbols))

    def _fixed(self, schema: Mapping[str, Any]) -> AvroType:
        size = schema.get("size")
        if not isinstance(size, int) or not 0 < size <= self._limits.max_batch_bytes:
            raise UnreadableFile(f"its schema has the fixed {_shown(schema.get('name'))} of {_shown(size)} bytes")
        encoded = {"type": "fixed", "name": self._name(), "size": size}
        kind: pa.DataType = pa.binary()
        make: Make = made.unchanged
        if schema.get("logicalType") == "decimal" and (found := _decimal(schema)) is not None:
            kind, make = found
        return AvroType(encoded, pa.binary(), kind, make, size, 40 + size)

    def _counted(self, found: AvroType) -> AvroType:
        self._count()
        return found

    def _count(self) -> None:
        self._num_columns += 1
        if self._num_columns > self._limits.max_columns:
            raise UnreadableFile(f"it has more than {self._limits.max_columns} columns (ReadLimits.max_columns)")

    def _name(self) -> str:
        self._num_types += 1
        return f"t{self._num_types}"


def _field(number: int) -> str:
    return f"f{number}"


def _shown(value: object) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, default=str), 80)


_PLAIN = {
    "null": AvroType("null", pa.null(), pa.null(), least_bytes=0),
    "boolean": AvroType("boolean", pa.bool_(), pa.bool_()),
    "int": AvroType("int", pa.int32(), pa.int32()),
    "long": AvroType("long", pa.int64(), pa.int64()),
    "float": AvroType("float", pa.float32(), pa.float32(), least_bytes=4),
    "double": AvroType("double", pa.float64(), pa.float64(), least_bytes=8),
    "bytes": AvroType("bytes", pa.binary(), pa.binary()),
    "string": AvroType("bytes", pa.binary(), pa.string(), made.viewed(pa.string())),
}
_WIDTHS = {pa.int32(): 1, pa.int64(): 2, pa.float32(): 3, pa.float64(): 4}
_ALIKE = {pa.int64(): {pa.int32(), pa.int64()}, pa.float64(): {pa.float32(), pa.float64()}}
"""Type → the types that a union may have beside it, and still be one column."""


def _viewed(encoded: str, decoded: pa.DataType, kind: pa.DataType) -> AvroType:
    return AvroType(encoded, decoded, kind, made.viewed(kind))


_LOGICAL: Mapping[tuple[str, str], AvroType] = {
    ("int", "date"): _viewed("int", pa.int32(), pa.date32()),
    ("int", "time-millis"): _viewed("int", pa.int32(), pa.time32("ms")),
    ("long", "time-micros"): _viewed("long", pa.int64(), pa.time64("us")),
    **{
        ("long", f"{prefix}timestamp-{name}"): _viewed("long", pa.int64(), pa.timestamp(unit, zone))
        for prefix, zone in (("", "UTC"), ("local-", None))
        for name, unit in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
    },
}


def _logical(schema: Mapping[str, Any], name: str) -> AvroType | None:
    """The logical type over a plain one; None without one that is known."""
    logical = schema.get("logicalType")
    if name == "bytes" and logical == "decimal":
        found = _decimal(schema)
        return None if found is None else AvroType("bytes", pa.binary(), *found)
    return _LOGICAL.get((name, logical)) if isinstance(logical, str) else None


def _decimal(schema: Mapping[str, Any]) -> tuple[pa.DataType, Make] | None:
    """The type of a decimal; None if it is not a valid one, and counts as the bytes below it."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision <= _MOST_PRECISION:
        return None
    kind = pa.decimal128(precision, scale) if 0 < precision <= 38 else pa.decimal256(max(1, precision), scale)
    return kind, made.decimals(kind)
