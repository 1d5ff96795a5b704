"""Reader of changes in Debezium's envelope, as lines of JSON: one change a line.

    {"before": {"id": 1, "amount": 5}, "after": {"id": 1, "amount": 7}, "op": "u", "ts_ms": 9, "source": {"lsn": 3}}

                   id  amount  __op  __ts_ms  __source_lsn
    is the row      1       7  u           9             3

The columns are those of the table, from `after`, or from `before` for a deletion.  With a prefix of two underscores
follow those of the envelope, named as by Debezium's transformation `ExtractNewRecordState`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from actors.file_errors import UnreadableFile
from actors.formats.salvage import set_aside, with_a_record
from actors.formats.template import Reader, ReadRequest
from actors.formats.text.json import JsonReader
from actors.objects.object_file import ObjectFile
from actors.rows import Rows
from actors.schemas.column_names import NameRule
from actors.schemas.conform import Timestamps
from actors.schemas.merged_schema import merged_schema
from actors.settings import ReadLimits

_BEFORE, _AFTER, _SOURCE = "before", "after", "source"
_PAYLOAD = "payload"
_OF_ENVELOPE = "__"
_OF_SOURCE = f"{_OF_ENVELOPE}{_SOURCE}_"
_NO_ROW = "it has neither `before` nor `after`; a change of a row has one of them, and a truncation is none"


class DebeziumReader(Reader):
    """See `FileReader`; the schema names the columns of the envelope."""

    def __init__(
        self,
        limits: ReadLimits = ReadLimits(),
        timestamps: Timestamps = "exact",
        names: NameRule = "any_case",
    ) -> None:
        super().__init__(limits, timestamps, names)
        self._json = JsonReader(limits, timestamps, names)

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        envelope = self._json.infer_schema(file)
        types = dict(zip(envelope.names, envelope.types, strict=True))
        rows = [pa.schema(list(types[name])) for name in (_AFTER, _BEFORE) if _is_struct(types.get(name))]
        if not rows:
            if _PAYLOAD in types:
                remedy = (
                    "it is within `payload`: let the connector write it without (value.converter.schemas.enable=false)"
                )
            else:
                remedy = 'if the lines are the rows themselves, read them with format="json"'
            raise UnreadableFile(f"no line has Debezium's envelope, an object in `before` or `after`; {remedy}")
        source = list(types[_SOURCE]) if _is_struct(types.get(_SOURCE)) else []
        fields = [field.with_name(_OF_SOURCE + field.name) for field in source if not kinds.is_nested(field.type)]
        fields += [
            pa.field(_OF_ENVELOPE + name, kind)
            for name, kind in types.items()
            if name not in (_BEFORE, _AFTER, _SOURCE) and not kinds.is_nested(kind)
        ]
        return pa.schema([*merged_schema(rows), *fields])

    def _rows(self, request: ReadRequest) -> Iterator[Rows]:
        return with_a_record(self._changes(request), partial(self.infer_schema, request.file))

    def _changes(self, request: ReadRequest) -> Iterator[Rows]:
        for piece in self._json.read(request.file, _envelope(request.schema), request.offset, request.piece_bytes):
            yield _unwrapped(piece, request.wanted)


def _is_struct(kind: pa.DataType | None) -> bool:
    return kind is not None and bool(kinds.is_struct(kind))


def _envelope(schema: pa.Schema) -> pa.Schema:
    """The envelope with exactly the columns of a source's schema."""
    row = pa.struct([field for field in schema if not field.name.startswith(_OF_ENVELOPE)])
    source = [field.with_name(_in_source(field.name)) for field in schema if field.name.startswith(_OF_SOURCE)]
    others = [
        field.with_name(field.name.removeprefix(_OF_ENVELOPE))
        for field in schema
        if field.name.startswith(_OF_ENVELOPE) and not field.name.startswith(_OF_SOURCE)
    ]
    sources = [pa.field(_SOURCE, pa.struct(source))] if source else []
    return pa.schema([pa.field(_BEFORE, row), pa.field(_AFTER, row), *others, *sources])


def _unwrapped(piece: Rows, wanted: pa.Schema) -> Rows:
    """The changes of envelopes; one without a row is a bad record."""
    table = piece.table.combine_chunks()
    after, before = table.column(_AFTER), table.column(_BEFORE)
    is_after = after.is_valid()
    columns = [_column(table, field.name, after, before, is_after) for field in wanted]
    rows = pa.Table.from_arrays(columns, schema=wanted)
    unwrapped = replace(piece, table=rows, others=(), missing=())
    lacks_row = np.asarray(pc.invert(pc.or_(is_after, before.is_valid())))
    return set_aside(unwrapped, table, lacks_row, lambda _: _NO_ROW) if lacks_row.any() else unwrapped


def _column(
    table: pa.Table, name: str, after: pa.ChunkedArray, before: pa.ChunkedArray, is_after: pa.ChunkedArray
) -> pa.ChunkedArray:
    if name.startswith(_OF_SOURCE):
        return pc.struct_field(table.column(_SOURCE), _in_source(name))
    if name.startswith(_OF_ENVELOPE):
        return table.column(name.removeprefix(_OF_ENVELOPE))
    return pc.if_else(is_after, pc.struct_field(after, name), pc.struct_field(before, name))


def _in_source(name: str) -> str:
    return name.removeprefix(_OF_SOURCE)
