"""Schema inference for JSON records, within limits on width and depth.

    values of a field                       its type
    none, or null, or always {}             null: open until a value is seen
    integers                                bigint; from 2^63 on decimal(20, 0), decimal(38, 0), or their text
    integers and other numbers              double; their text if a double does not hold one of the integers
    texts                                   a timestamp if all are times, with a zone if one has it; else a string
    values of several kinds                 a string: a text as it is, another value as its JSON text
    objects, lists                          a struct, a list

Spark and DuckDB read a field of several kinds as a string, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from actors.file_errors import TooLargeToInfer, UnreadableFile
from actors.formats.salvage import WRONG
from actors.formats.text.json_text import is_too_large, parsed, reason_of
from actors.formats.text.json_values import JsonColumns
from actors.schemas.conform import Timestamps
from actors.settings import ReadLimits

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[ T]\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
_MOST_INT_DIGITS = 400
_DECIMAL_DIGITS = (20, 38)
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


class _TooDeep(Exception):
    """A value is nested deeper than `ReadLimits.max_nesting`."""


class _LongInteger:
    """An integer with more digits than any type."""


def _integer(digits: str) -> int | _LongInteger:
    return int(digits) if len(digits) <= _MOST_INT_DIGITS else _LongInteger()


_DECODER = json.JSONDecoder(parse_int=_integer)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def loads(text: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError, RecursionError: it is not JSON, has half of a surrogate pair, or is nested too deep.
    """
    value = _DECODER.decode(text.decode())
    if _SURROGATE.search(text):
        # Python accepts half of a pair, which no text in UTF-8 can have.
        json.dumps(value, ensure_ascii=False, default=str).encode()
    return value


@dataclass(slots=True)
class _Field:
    """The values of one field that were seen."""

    kinds: set[str] = field(default_factory=set)
    lowest: int = 0
    highest: int = 0
    is_long: bool = False
    is_rounded: bool = False
    """True if a double does not hold one of the integers."""
    texts: list[str] | None = field(default_factory=list)
    """None if one of them is not a time."""
    has_zone: bool = False
    members: dict[str, _Field] = field(default_factory=dict)
    element: _Field | None = None

    def add_number(self, value: int | _LongInteger) -> None:
        self.kinds.add("integer")
        if isinstance(value, _LongInteger):
            self.is_long = self.is_rounded = True
            return
        self.lowest, self.highest = min(self.lowest, value), max(self.highest, value)
        if not -(2**53) <= value <= 2**53:
            self.is_rounded |= int(float(value)) != value if value.bit_length() < 1024 else True

    def add_text(self, value: str) -> None:
        self.kinds.add("text")
        if self.texts is not None:
            found = _TIME.fullmatch(value)
            if found is None:
                self.texts = None
            else:
                self.texts.append(value)
                self.has_zone |= found["zone"] is not None

    def type(self, timestamps: Timestamps) -> pa.DataType:
        """The type of the field."""
        kinds = {"number" if kind == "integer" else kind for kind in self.kinds}
        if len(kinds) > 1:
            return pa.string()
        if "number" in kinds:
            return self._number()
        if "text" in kinds:
            return self._text(timestamps)
        if "boolean" in kinds:
            return pa.bool_()
        if "list" in kinds:
            assert self.element is not None
            return pa.list_(self.element.type(timestamps))
        if self.members:
            return pa.struct([(name, member.type(timestamps)) for name, member in self.members.items()])
        return pa.null()

    def _number(self) -> pa.DataType:
        if "number" in self.kinds:
            return pa.string() if self.is_rounded else pa.float64()
        if self.lowest >= _LOWEST and self.highest <= _HIGHEST:
            return pa.string() if self.is_long else pa.int64()
        digits = len(str(max(-self.lowest, self.highest)))
        fitting = (precision for precision in _DECIMAL_DIGITS if digits <= precision and not self.is_long)
        precision = next(fitting, None)
        return pa.string() if precision is None else pa.decimal128(precision, 0)

    def _text(self, timestamps: Timestamps) -> pa.DataType:
        if not self.texts:
            return pa.string()
        kind = pa.timestamp("us", "UTC" if self.has_zone else None)
        lines = "\n".join(json.dumps({"v": text}) for text in self.texts).encode()
        try:
            JsonColumns(pa.schema([("v", kind)]), timestamps).parse(lines)
        except pa.ArrowMemoryError:
            raise  # not an error of the file
        except WRONG:
            return pa.string()
        return kind


@dataclass
class JsonShape:
    """The fields of JSON records.

    Args:
        limits: the limits of one file.
        num_columns: the number of fields with different paths.
    """

    limits: ReadLimits
    num_columns: int = 0
    _root: _Field = field(default_factory=_Field)

    def add(self, record: bytes, number: int) -> bool:
        """Adds the fields of a record; False if it is not an object.

        Args:
            number: its number in the file, counted from 1.

        Raises:
            UnreadableFile: the records are wider or deeper than the limits.
            TooLargeToInfer: the record is too long.
        """
        limits = self.limits
        if is_too_large(record, limits):
            raise TooLargeToInfer(
                f"its {len(record)} bytes of JSON would take more than {limits.max_batch_bytes} bytes of memory to "
                "find its columns (ReadLimits.max_batch_bytes); declare a schema",
                number,
            )
        might_be_deep = record.count(b"[") + record.count(b"{") > limits.max_nesting
        try:
            value = loads(record)
            if isinstance(value, dict):
                self._add(value, self._root, limits.max_nesting)
        except (RecursionError, _TooDeep):
            raise UnreadableFile(
                f"its JSON has more than {limits.max_nesting} levels (ReadLimits.max_nesting)", number
            ) from None
        except ValueError:
            if might_be_deep:
                raise UnreadableFile("the line is not a JSON object", number) from None
            return False
        if self.num_columns > limits.max_columns:
            raise UnreadableFile(f"it has more than {limits.max_columns} columns (ReadLimits.max_columns)", number)
        return isinstance(value, dict)

    def fields(self, timestamps: Timestamps) -> list[pa.Field]:
        """The columns, in the order of their appearance."""
        return [pa.field(name, member.type(timestamps)) for name, member in self._root.members.items()]

    @property
    def of_several_kinds(self) -> tuple[str, ...]:
        """The columns whose values are of several kinds."""
        return tuple(name for name, member in self._root.members.items() if _is_mixed(member))

    def _add(self, value: Any, into: _Field, levels: int) -> None:
        if isinstance(value, str):
            into.add_text(value)
        elif isinstance(value, dict):
            if levels == 0:
                raise _TooDeep
            into.kinds.add("object")
            for name, item in value.items():
                member = into.members.get(name)
                if member is None:
                    member = into.members[name] = _Field()
                    self.num_columns += not isinstance(item, dict)
                self._add(item, member, levels - 1)
        elif isinstance(value, list):
            if levels == 0:
                raise _TooDeep
            into.kinds.add("list")
            into.element = into.element or _Field()
            for item in value:
                self._add(item, into.element, levels - 1)
        elif isinstance(value, bool):
            into.kinds.add("boolean")
        elif isinstance(value, float):
            into.kinds.add("number")
        elif value is not None:
            into.add_number(value)


def _is_mixed(member: _Field) -> bool:
    """True for values of several kinds, at any level."""
    kinds = {"number" if kind == "integer" else kind for kind in member.kinds}
    within = [*member.members.values(), *([member.element] if member.element else [])]
    return len(kinds) > 1 or any(map(_is_mixed, within))


def shape_of(records: Iterable[bytes], limits: ReadLimits, require_time: Callable[[], None]) -> JsonShape:
    """The fields of some records.  Records that are not objects are ignored: they are bad, and reading reports them.

    Raises:
        UnreadableFile: no record is an object or null, or the records are wider or deeper than the limits.
    """
    shape = JsonShape(limits)
    first_bad: tuple[int, bytes] | None = None
    is_any_good = False
    for number, record in enumerate(records, 1):
        require_time()
        is_good = record == b"null" or shape.add(record, number)
        is_any_good |= is_good
        if not is_good and first_bad is None:
            first_bad = number, record
    if not is_any_good and first_bad is not None:
        raise UnreadableFile(_fault(first_bad[1]), first_bad[0])
    return shape


def _fault(record: bytes) -> str:
    """The reason why a record is not an object."""
    try:
        parsed(record, pa.schema([("__sw_none", pa.null())]))
    except pa.ArrowMemoryError:
        raise  # not an error of the file
    except WRONG as error:
        return reason_of(error)
    return "it is not a JSON object"
