"""Rows in the answer of a worker, which ran the SQL of others: they are checked before they are used."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from slackwater.confinement.errors import WorkerEndedError

_BITS = 8
# Nulls take no bits: some millions of them are accepted in a small answer.
_SPARE_BYTES = 1 << 20
# The dictionary of a column is validated again for each batch: 8 GiB take some seconds.
_MOST_DICTIONARY_BYTES = 8 << 30
# Numbers of fields and types in Message.fbs and Schema.fbs of Arrow IPC.
_VERSION, _HEADER, _V5 = 0, 2, 4
_ID, _DICTIONARY_DATA, _IS_DELTA = 0, 1, 2
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3
_SCHEMA_FIELDS, _SCHEMA_METADATA = 1, 2
_NAME, _KIND, _TYPE, _DICTIONARY, _CHILDREN, _FIELD_METADATA = 0, 2, 3, 4, 5, 6
_TIMESTAMP, _UNION, _LARGEST_LIST = 10, 14, 21
_TIME_ZONE, _UNION_MODE, _UNION_IDS = 1, 0, 1
_LEAST_FIELD_BYTES = 24
_REFUSED = "the worker process sent no valid rows: "


def received_table(answer: bytes) -> pa.Table:
    """The table in an answer.  Its buffers lie in the answer, so it takes no further memory.

    Raises:
        WorkerEndedError: the answer is not a stream of Arrow, is compressed, uses one part of its bytes twice, or has
            an array with more values than the answer has bits and 8 million more.
    """
    buffer = pa.py_buffer(answer)
    try:
        _require_plain(buffer)
        table = pa.ipc.open_stream(buffer).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError, struct.error) as error:
        raise WorkerEndedError(f"{_REFUSED}{error}") from None
    return table


def _require_plain(buffer: pa.Buffer) -> None:
    """Refuses a stream that may take thousands of times its size in memory or in time.

    The reader of messages has verified that all positions are inside the metadata.
    """
    value_count = dictionary_bytes = validated_bytes = 0
    uses: Counter[int] = Counter()
    sizes: dict[int, int] = {}
    for message in pa.ipc.MessageReader.open_stream(buffer):
        metadata = _Metadata(message.metadata.to_pybytes())
        root = metadata.target(0)
        # A message of an earlier version can name its compression in its custom metadata.
        if metadata.number(root, _VERSION, "<h") != _V5:
            raise WorkerEndedError(f"{_REFUSED}a message has another version than 5")
        header = metadata.table(root, _HEADER)
        if message.type == "schema":
            uses = _dictionary_uses(metadata, header)
            continue
        if message.type == "dictionary":
            # The dictionary of each batch is a copy of all parts that were sent before it.
            if metadata.number(header, _IS_DELTA, "<B"):
                raise WorkerEndedError(f"{_REFUSED}a dictionary comes in parts")
            number = metadata.number(header, _ID, "<q")
            size = uses[number] * message.body.size
            dictionary_bytes += size - sizes.get(number, 0)
            sizes[number] = size
            header = metadata.table(header, _DICTIONARY_DATA)
        else:
            validated_bytes += dictionary_bytes
            if validated_bytes > _MOST_DICTIONARY_BYTES:
                raise WorkerEndedError(f"{_REFUSED}a large dictionary comes with too many batches")
        if metadata.place(header, _COMPRESSION):
            raise WorkerEndedError(f"{_REFUSED}they are compressed")
        if sum(length for _, length in metadata.pairs(header, _BUFFERS)) > message.body.size:
            raise WorkerEndedError(f"{_REFUSED}two columns share bytes")
        lengths = [length for length, _ in metadata.pairs(header, _NODES)]
        value_count += max(metadata.number(header, _LENGTH, "<q"), *lengths, 0)
        if value_count > _BITS * (buffer.size + _SPARE_BYTES):
            raise WorkerEndedError(f"{_REFUSED}an array has more values than the answer has bits")


def _dictionary_uses(metadata: _Metadata, schema: int) -> Counter[int]:
    """The number of fields of each dictionary.

    Raises:
        WorkerEndedError: the fields or texts take more bytes than the message, or the arrays repeat values.
    """
    uses: Counter[int] = Counter()
    left = metadata.size - metadata.custom_bytes(schema, _SCHEMA_METADATA)
    stack = [metadata.tables(schema, _SCHEMA_FIELDS)]
    while stack:
        field = next(stack[-1], None)
        if field is None:
            stack.pop()
            continue
        left -= _LEAST_FIELD_BYTES + metadata.length(field, _NAME) + metadata.custom_bytes(field, _FIELD_METADATA)
        kind, details = metadata.number(field, _KIND, "<B"), metadata.table(field, _TYPE)
        if kind == _TIMESTAMP:
            left -= metadata.length(details, _TIME_ZONE)
        elif kind == _UNION:
            left -= 4 * metadata.length(details, _UNION_IDS)
        if left < 0:
            raise WorkerEndedError(f"{_REFUSED}its schema uses bytes twice")
        # Views, runs and dense unions refer to one value from many rows.
        if kind > _LARGEST_LIST or (kind == _UNION and metadata.number(details, _UNION_MODE, "<h")):
            raise WorkerEndedError(f"{_REFUSED}a column has a type that no answer has")
        if metadata.place(field, _DICTIONARY):
            uses[metadata.number(metadata.table(field, _DICTIONARY), _ID, "<q")] += 1
        stack.append(metadata.tables(field, _CHILDREN))
    return uses


class _Metadata:
    """A verified flatbuffer.  A table is the position of the table; a field is its number in the table."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size = len(content)

    def target(self, position: int) -> int:
        """The position to which the offset at a position refers."""
        return int(position + struct.unpack_from("<I", self._content, position)[0])

    def place(self, table: int, field: int) -> int:
        """The position of a field; 0 for a missing field."""
        vtable = table - struct.unpack_from("<i", self._content, table)[0]
        size = struct.unpack_from("<H", self._content, vtable)[0]
        at = 4 + 2 * field
        offset = struct.unpack_from("<H", self._content, vtable + at)[0] if at < size else 0
        return int(table + offset) if offset else 0

    def number(self, table: int, field: int, layout: str) -> int:
        """A number; 0 for a missing field."""
        place = self.place(table, field)
        return int(struct.unpack_from(layout, self._content, place)[0]) if place else 0

    def table(self, table: int, field: int) -> int:
        """The table in a field.

        Raises:
            WorkerEndedError: the field is missing.
        """
        place = self.place(table, field)
        if not place:
            raise WorkerEndedError(f"{_REFUSED}a message is incomplete")
        return self.target(place)

    def length(self, table: int, field: int) -> int:
        """The number of elements of a text or a vector; 0 for a missing field."""
        place = self.place(table, field)
        return int(struct.unpack_from("<I", self._content, self.target(place))[0]) if place else 0

    def tables(self, table: int, field: int) -> Iterator[int]:
        place = self.place(table, field)
        first = self.target(place) + 4 if place else 0
        return (self.target(first + 4 * number) for number in range(self.length(table, field)))

    def pairs(self, table: int, field: int) -> Iterator[tuple[int, int]]:
        """The pairs of numbers of 64 bits in a vector."""
        count = self.length(table, field)
        start = self.target(self.place(table, field)) + 4 if count else 0
        return struct.iter_unpack("<qq", self._content[start : start + 16 * count])

    def custom_bytes(self, table: int, field: int) -> int:
        """The bytes of the keys and values of custom metadata, and of the references to them."""
        return sum(4 + self.length(each, 0) + self.length(each, 1) for each in self.tables(table, field))
