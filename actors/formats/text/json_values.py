"""Columns of a schema from a text of JSON records.

Arrow parses the records.  Columns that it cannot parse are cut out of the text, value by value, and parsed apart:

    map<string, T>           its names are the keys; its values are parsed as a column of type T
    string                   a text is read as it is, another value as its JSON text
    struct and list          with such a type within: parsed again as records

A column is parsed apart from the first block on in which Arrow refuses it; both ways give the same values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as kinds

from actors.file_errors import UnreadableFile, one_line
from actors.formats.salvage import WRONG
from actors.formats.text.json_members import Objects, Values, elements, text_of
from actors.formats.text.json_text import parsed, reason_of
from actors.formats.text.json_tokens import CLOSE_OBJECT, OPEN_OBJECT, brackets
from actors.formats.text.lines import Text
from actors.schemas.conform import Timestamps

_NULL = b"null"
_VALUE = "v"
_NO_COLUMN = pa.schema([("__sw_none", pa.null())])
"""For records of which no column is parsed by Arrow: it checks them, and finds their number."""
_NO_TIMES = pa.schema([])
_CHANGED_TEXT = re.compile(r"Column\((/.*)\) changed from string to \w+")
_FAILED_TIME = re.compile(r"Failed to convert JSON to timestamp")
_ZEROS = re.compile(rb"(\d:\d\d:\d\d\.\d{6})0+(?!\d)")
_SHOWN_CHARACTERS = 60
_MOST_ERRORS = 8
"""The errors of a reading that put a single column apart: each costs a parse, and schemas have thousands of columns."""
_TEXT_REMEDY = "declare the column as a string for the JSON text of its values"


class JsonColumns:
    """Parses records into the columns of a schema.  It keeps the columns that are parsed apart.

    Args:
        schema: safe types; every value of a column of type null is read as null.
        timestamps: the treatment of digits below microseconds.

    """

    def __init__(self, schema: pa.Schema, timestamps: Timestamps) -> None:
        self._schema, self._timestamps = schema, timestamps
        self._text_schema, self._apart = _of_arrow(schema, timestamps)
        self._cuts_zeros, self._num_errors = False, 0
        self._within: dict[str, JsonColumns] = {}
        self._arrow_schema, self._times_schema = self._schemas() if self._apart else (self._text_schema, _NO_TIMES)

    @property
    def are_of_arrow(self) -> bool:
        """True if Arrow parses all columns."""
        return not self._apart

    def parse(self, text: Text, unexpected: str = "ignore") -> pa.Table:
        """The rows of records with white space between them.

        Args:
            unexpected: the treatment of extra fields, "ignore" or "error".

        Raises:
            pa.ArrowInvalid, UnreadableFile: a record is bad.
        """
        while True:
            try:
                return self._parsed(text, unexpected)
            except pa.ArrowInvalid as error:
                if not self._adapt(str(error)):
                    raise

    def _schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """The columns that Arrow parses from the unchanged text, and the times that it parses without `_ZEROS`."""
        fields = [field for field in self._text_schema if field.name not in self._apart]
        times = [field for field in fields if self._cuts_zeros and kinds.is_timestamp(field.type)]
        others = [field for field in fields if field not in times]
        return pa.schema(others), pa.schema(times)

    def _adapt(self, error: str) -> bool:
        """Parses further columns apart after an error of Arrow; False if that does not help."""
        apart: set[str] = set()
        if (changed := _CHANGED_TEXT.search(error)) is not None:
            path = changed[1]
            apart = {
                field.name
                for field in self._schema
                if f"{path}/".startswith(f"/{field.name}/") and _has(field.type, kinds.is_string)
            }
        cuts_zeros = self._cuts_zeros
        if _FAILED_TIME.search(error):
            cuts_zeros = True
            apart = {
                field.name
                for field in self._schema
                if kinds.is_nested(field.type) and _has(field.type, kinds.is_timestamp)
            }
        if apart <= self._apart and cuts_zeros == self._cuts_zeros:
            return False
        self._num_errors += 1
        if self._num_errors > _MOST_ERRORS:
            apart |= {field.name for field in self._schema if _has(field.type, kinds.is_string)}
        self._apart |= apart
        self._cuts_zeros = cuts_zeros
        self._arrow_schema, self._times_schema = self._schemas()
        return True

    def _parsed(self, text: Text, unexpected: str) -> pa.Table:
        table = parsed(text, self._arrow_schema if self._arrow_schema.names else _NO_COLUMN, unexpected)
        if not self._apart and not self._times_schema.names:
            return table
        columns = {name: table.column(name) for name in self._arrow_schema.names}
        if self._times_schema.names:
            times = parsed(_ZEROS.sub(rb"\1", bytes(text)), self._times_schema)
            columns |= {name: times.column(name) for name in self._times_schema.names}
        wanted = [name for name in self._apart if not kinds.is_null(self._schema.field(name).type)]
        if wanted:
            columns |= self._columns_apart(bytes(text), wanted, table.num_rows)
        arrays = [columns[field.name] if field.name in columns else pa.nulls(table.num_rows) for field in self._schema]
        return pa.Table.from_arrays(arrays, names=self._schema.names)

    def _columns_apart(self, text: bytes, names: Sequence[str], num_rows: int) -> dict[str, pa.Array]:
        objects = Objects(text)
        if objects.num_objects != num_rows:
            # A record is null: an object without members has the same row.
            objects = Objects(_with_objects(text))
        columns = {}
        for name, values in objects.named(names).items():
            if (np.diff(values.owners) == 0).any():
                raise UnreadableFile(f"column {name} was specified twice")
            try:
                columns[name] = self._column(name, values, num_rows)
            except pa.ArrowMemoryError:
                raise  # not an error of the file
            except WRONG as error:
                reason = reason_of(error)
            else:
                continue
            raise UnreadableFile(f"column {name}: {reason}")
        return columns

    def _column(self, name: str, values: Values, num_rows: int) -> pa.Array:
        """A column from its values; null in the records without one."""
        kind = self._schema.field(name).type
        is_value = np.array([text != _NULL for text in values.texts], np.bool_)
        owners, texts = values.owners[is_value], [text for text in values.texts if text != _NULL]
        if kind == pa.string():
            array = pa.array([text_of(text) for text in texts], pa.binary()).cast(pa.string())
        elif kinds.is_map(kind):
            array = self._maps(name, kind, texts)
        elif kinds.is_struct(kind):
            _require_first(texts, b"{", "an object")
            table = self._columns_within(name, pa.schema(list(kind))).parse(b"\n".join(texts))
            array = pa.StructArray.from_arrays(list(map(_array, table.columns)), table.column_names)
        else:
            _require_first(texts, b"[", "a list")
            found = elements(b"\n".join(texts))
            items = self._items(name, kind.value_type, found.texts)
            array = pa.ListArray.from_arrays(_offsets(found.owners, len(texts)), items)
        return _spread(array, owners, num_rows)

    def _maps(self, name: str, kind: pa.MapType, texts: Sequence[bytes]) -> pa.Array:
        _require_first(texts, b"{", "an object")
        entries = Objects(b"\n".join(texts)).entries()
        names = pa.array(entries.names, pa.binary()).cast(pa.string())
        _require_different(entries.owners, names)
        keys = names if kind.key_type == pa.string() else names.cast(kind.key_type)
        items = self._items(name, kind.item_type, entries.texts)
        return pa.MapArray.from_arrays(_offsets(entries.owners, len(texts)), keys, items)

    def _items(self, name: str, kind: pa.DataType, texts: Sequence[bytes]) -> pa.Array:
        """The values of a list or a map, as a column of records."""
        text = b'{"v":' + b'}\n{"v":'.join(texts) + b"}" if texts else b""
        table = self._columns_within(name, pa.schema([(_VALUE, kind)])).parse(text)
        return _array(table.column(_VALUE))

    def _columns_within(self, name: str, schema: pa.Schema) -> JsonColumns:
        if name not in self._within:
            self._within[name] = JsonColumns(schema, self._timestamps)
        return self._within[name]


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return (
        column
        if isinstance(column, pa.Array)
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else pa.nulls(0, column.type)
    )


def _offsets(owners: npt.NDArray[np.int64], num_lists: int) -> pa.Array:
    return pa.array(np.searchsorted(owners, np.arange(num_lists + 1)), pa.int32())


def _spread(array: pa.Array, owners: npt.NDArray[np.int64], num_rows: int) -> pa.Array:
    """The values at the rows of their owners, and null in the others."""
    if len(array) == num_rows:
        return array
    indices = np.zeros(num_rows, np.int64)
    indices[owners] = np.arange(len(array))
    is_null = np.ones(num_rows, np.bool_)
    is_null[owners] = False
    return array.take(pa.array(indices, mask=is_null))


def _require_first(texts: Sequence[bytes], sign: bytes, expected: str) -> None:
    for text in texts:
        if not text.startswith(sign):
            shown = one_line(text.decode("utf-8", "replace"), _SHOWN_CHARACTERS)
            raise UnreadableFile(f"{expected} is expected, not {shown}; {_TEXT_REMEDY}")


def _require_different(owners: npt.NDArray[np.int64], names: pa.Array) -> None:
    """Refuses a map with a key twice."""
    codes = np.asarray(names.dictionary_encode().indices, np.int64)
    pairs = owners * (int(codes.max(initial=0)) + 1) + codes
    if len(np.unique(pairs)) < len(pairs):
        order = np.argsort(pairs, kind="stable")
        twice = order[1:][np.diff(pairs[order]) == 0][0]
        raise UnreadableFile(f"the key {names[int(twice)].as_py()!r} appears twice")


def _with_objects(text: bytes) -> bytes:
    """The records of a text, with `{}` instead of null."""
    positions, signs, depths = brackets(text)
    starts = positions[(signs == OPEN_OBJECT) & (depths == 1)].tolist()
    ends = (positions[(signs == CLOSE_OBJECT) & (depths == 0)] + 1).tolist()
    gaps = zip([0, *ends], [*starts, len(text)], strict=True)
    between = [text[start:end].replace(_NULL, b"{}") for start, end in gaps]
    objects = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return b"".join(part for pair in zip(between, [*objects, b""], strict=True) for part in pair)


def _text_type(kind: pa.DataType, timestamps: Timestamps) -> pa.DataType:
    """The type that Arrow parses from JSON for a type; `conform` converts the rest."""
    if kinds.is_struct(kind):
        return pa.struct([field.with_type(_text_type(field.type, timestamps)) for field in kind])
    if kinds.is_list(kind):
        return pa.list_(_text_type(kind.value_type, timestamps))
    is_cut = kinds.is_timestamp(kind) and timestamps == "truncate"
    return pa.string() if kind == pa.date32() or is_cut else kind


@lru_cache(maxsize=100)
def _of_arrow(schema: pa.Schema, timestamps: Timestamps) -> tuple[pa.Schema, frozenset[str]]:
    """The types that Arrow parses for the columns of a schema, and the columns that it never parses."""
    fields = [field.with_type(_text_type(field.type, timestamps)) for field in schema]
    apart = (field.name for field in schema if kinds.is_null(field.type) or _has(field.type, kinds.is_map))
    return pa.schema(fields), frozenset(apart)


@lru_cache(maxsize=1_000)
def _has(kind: pa.DataType, is_wanted: Callable[[pa.DataType], bool]) -> bool:
    """True if a type or a type within it is wanted."""
    return is_wanted(kind) or any(_has(kind.field(index).type, is_wanted) for index in range(kind.num_fields))
