"""Thrift's compact protocol, in which Parquet writes its footer and the headers of pages."""

from __future__ import annotations

_BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(3, 13)
_BOOLEANS = (1, 2)
_NUMBERS = (_I16, _I32, _I64)


class Compact:
    """Decoder of one struct.

    Args:
        keeps_lists: whether the result has lists of structs, which may take more memory than their bytes.

    Raises:
        IndexError: the bytes end within a value.
        ValueError: a byte is not valid.
        RecursionError: structs or lists are nested too deeply.
    """

    def __init__(self, content: bytes, *, keeps_lists: bool = False) -> None:
        self._content, self._keeps_lists = content, keeps_lists
        self.position = 0

    def struct(self) -> dict[int, object]:
        """The fields of a struct by their ids: numbers, structs and lists of structs; None for other values."""
        fields: dict[int, object] = {}
        number, content, at = 0, self._content, self.position
        while head := content[at]:
            at += 1
            kind = head & 15
            if head < 16:
                self.position = at
                number, at = _zigzag(self._varint()), self.position
            else:
                number += head >> 4
            # Most values of a page header are numbers, and each page of a text is looked at.
            if kind in _NUMBERS:
                value = content[at]
                at += 1
                if value >= 128:
                    self.position = at - 1
                    value, at = self._varint(), self.position
                fields[number] = (value >> 1) ^ -(value & 1)
            else:
                self.position = at
                fields[number], at = self._value(kind), self.position
        self.position = at + 1
        return fields

    def _value(self, kind: int) -> object:
        if kind in _NUMBERS:
            return _zigzag(self._varint())
        if kind == _STRUCT:
            return self.struct()
        if kind in _BOOLEANS:
            return None  # the value is in the kind
        if kind == _BYTE:
            self._skip(1)
        elif kind == _DOUBLE:
            self._skip(8)
        elif kind == _BINARY:
            self._skip(self._varint())
        elif kind in (_LIST, _SET):
            head = self._byte()
            length = head >> 4 if head >> 4 < 15 else self._varint()
            if self._keeps_lists and head & 15 == _STRUCT:
                return [self.struct() for _ in range(length)]
            for _ in range(length):
                self._element(head & 15)
        elif kind == _MAP:
            length = self._varint()
            kinds = self._byte() if length else 0
            for _ in range(length):
                self._element(kinds >> 4)
                self._element(kinds & 15)
        else:
            raise ValueError(f"{kind} is not a valid kind of value")
        return None

    def _element(self, kind: int) -> None:
        if kind in _BOOLEANS:
            self._skip(1)
        else:
            self._value(kind)

    def _byte(self) -> int:
        value = self._content[self.position]
        self.position += 1
        return value

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number has too many bytes")

    def _skip(self, nbytes: int) -> None:
        self.position += nbytes
        if self.position > len(self._content):
            raise IndexError


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
