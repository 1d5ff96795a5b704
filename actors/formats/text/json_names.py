"""Spellings of the columns of a source in a JSON file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from actors.file_errors import UnreadableFile
from actors.formats.text.json_schema import loads
from actors.formats.text.json_text import is_too_large
from actors.schemas.column_names import NameRule, renamed_columns, source_names, unique_names
from actors.settings import ReadLimits

NameTree: TypeAlias = dict[str, "NameTree"]
"""The names of the fields of objects, in the order of their appearance, each with the names within its values."""

_FEW_NAMES = 16
"""The names that are searched one by one, which is faster than an index of all names."""
_NAME = re.compile(rb'"(?:[^"\\]|\\.)*"')
_ESCAPED = re.compile(rb"\\u[0-9a-f]{4}")


class FileNames:
    """The names of the fields of a file, and the columns of the source that they are.

    A field that is spelled as the column counts; in a record without it, a field whose name differs by case alone.
    The same holds for the fields of a struct.

    Args:
        columns: the columns of the source, or the fields of a struct.
        rule: the match of names.
        names: the names of the fields.
        are_nested: True for the fields of a struct.

    Raises:
        AmbiguousNames: several fields match one column, and none is spelled as it is.
    """

    def __init__(
        self, columns: Iterable[pa.Field], rule: NameRule, names: NameTree, *, are_nested: bool = False
    ) -> None:
        self._columns = list(columns)
        known = frozenset(field.name for field in self._columns)
        # The number that a name gets among names in another case does not depend on the order in the file.
        ordered = sorted(names, key=lambda name: name not in known)
        unique = dict(zip(ordered, unique_names(ordered, are_nested=are_nested), strict=True))
        spellings = {field.name: [field.name] for field in self._columns}
        rest = []
        for name in names:
            if name not in known and unique[name] in known and unique[name] not in names:
                spellings[unique[name]].append(name)
            elif name not in known:
                rest.append(name)
        fold = str.lower if rule == "any_case" else str
        exact = {fold(name): name for name in known.intersection(names)}
        others = [name for name in rest if fold(name) not in exact]
        unmatched = [field.name for field in self._columns if fold(field.name) not in exact]
        try:
            matching = source_names(others, unmatched, rule, are_nested=are_nested)
        except UnreadableFile as error:
            raise AmbiguousNames(error.reason) from error
        for name, column in [*zip(others, matching, strict=True), *((name, exact.get(fold(name))) for name in rest)]:
            if column in spellings and name not in spellings[column]:
                spellings[column].append(name)
        self._spellings = spellings
        self._within = {
            field.name: _names_within(field.type, rule, self._tree(field.name, names)) for field in self._columns
        }
        self.of_source = frozenset(name for given in spellings.values() for name in given)
        """The names in the file that are columns of the source."""
        self.others = tuple(unique[name] for name in names if name not in self.of_source)
        column_of = {name: column for column, given in spellings.items() for name in given}
        self.renamed = renamed_columns(ordered, [column_of.get(name, unique[name]) for name in ordered])

    def _tree(self, column: str, names: NameTree) -> NameTree:
        """The names within the values of a column, in all its spellings."""
        return _merged(names[name] for name in self._spellings[column] if name in names)

    @property
    def _is_plain(self) -> bool:
        within = (names for names in self._within.values() if names is not None)
        return len(self.of_source) == len(self._spellings) and all(names._is_plain for names in within)

    def spellings(self, column: str) -> list[str]:
        """The names of a column in the file, and its name in the source."""
        return self._spellings[column]

    def in_file(self) -> list[pa.Field]:
        """The columns of the source by all their names in the file."""
        return [
            pa.field(name, _type_in_file(field.type, self._within[field.name]))
            for field in self._columns
            for name in self._spellings[field.name]
        ]

    def merged(self, table: pa.Table) -> pa.Table:
        """The columns by their names in the source."""
        if self._is_plain:
            return table
        columns = []
        for field in self._columns:
            found = (table.column(name) for name in self._spellings[field.name])
            columns.append(self._merged_column(field, [_one(column) for column in found]))
        return pa.Table.from_arrays(columns, names=[field.name for field in self._columns])

    def _merged_column(self, field: pa.Field, found: list[pa.Array]) -> pa.Array:
        within = self._within[field.name]
        first, *others = found if within is None else [within.renamed_values(array) for array in found]
        return pc.coalesce(first, *others) if others else first

    def renamed_values(self, array: pa.Array) -> pa.Array:
        """Structs by their names in the source; the array may have them within lists and maps."""
        if self._is_plain:
            return array
        if array.offset:
            array = array.take(pa.array(np.arange(len(array))))
        if kinds.is_list(array.type):
            return pa.ListArray.from_arrays(array.offsets, self.renamed_values(array.values), mask=array.is_null())
        if kinds.is_map(array.type):
            items = self.renamed_values(array.items)
            return pa.MapArray.from_arrays(array.offsets, array.keys, items, mask=array.is_null())
        children = [
            self._merged_column(field, [array.field(name) for name in self._spellings[field.name]])
            for field in self._columns
        ]
        fields = [field.with_type(child.type) for field, child in zip(self._columns, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def _names_within(kind: pa.DataType, rule: NameRule, names: NameTree) -> FileNames | None:
    """The names of the structs of a type; None for a type without a struct."""
    if kinds.is_list(kind):
        return _names_within(kind.value_type, rule, names)
    if kinds.is_map(kind):
        return _names_within(kind.item_type, rule, _merged(names.values()))
    return FileNames(list(kind), rule, names, are_nested=True) if kinds.is_struct(kind) else None


def _type_in_file(kind: pa.DataType, names: FileNames | None) -> pa.DataType:
    """A type with the names of the file in its structs."""
    if names is None:
        return kind
    if kinds.is_list(kind):
        return pa.list_(_type_in_file(kind.value_type, names))
    if kinds.is_map(kind):
        return pa.map_(kind.key_type, _type_in_file(kind.item_type, names))
    return pa.struct(names.in_file())


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


class AmbiguousNames(Exception):
    """Several fields of a file match one column of its source."""


def absent_names(spellings: Mapping[str, Collection[str]], text: bytes) -> frozenset[str]:
    """The columns of which no spelling is a name in a text of JSON.  The cost does not depend on their number.

    Args:
        spellings: column → its names in the file.
    """
    if len(spellings) <= _FEW_NAMES:
        return frozenset(
            column
            for column, names in spellings.items()
            if not any(each in text for name in names for each in _quoted(name))
        )
    found = {*_NAME.findall(text)}
    return frozenset(
        column
        for column, names in spellings.items()
        if found.isdisjoint(each for name in names for each in _quoted(name))
    )


def _quoted(name: str) -> set[bytes]:
    """A name as writers of JSON spell it: as it is, or in ASCII, with digits in either case."""
    escaped = json.dumps(name).encode()
    upper = _ESCAPED.sub(lambda match: match[0].upper().replace(b"U", b"u"), escaped)
    return {json.dumps(name, ensure_ascii=False).encode(), escaped, upper}


def names_of(
    records: Iterable[bytes], limits: ReadLimits, require_time: Callable[[], None], *, within: bool = True
) -> NameTree:
    """The names of the fields of objects; other records are skipped.

    So are records that would take more memory than `max_batch_bytes`.

    Args:
        within: False to leave out the names within the values.
    """
    names: NameTree = {}
    for record in records:
        require_time()
        if is_too_large(record, limits):
            continue
        try:
            value = loads(record)
            if isinstance(value, dict) and within:
                _add(value, names)
            elif isinstance(value, dict):
                names |= {name: {} for name in value}
        except (ValueError, RecursionError):
            continue
    return names


def _add(value: Any, names: NameTree) -> None:
    """Adds the names of the fields of an object, or of the objects of a list."""
    if isinstance(value, dict):
        for name, item in value.items():
            within = names.setdefault(name, {})
            if isinstance(item, dict | list):
                _add(item, within)
    elif isinstance(value, list):
        for item in value:
            _add(item, names)


def _merged(trees: Iterable[NameTree]) -> NameTree:
    merged: NameTree = {}
    for tree in trees:
        for name, within in tree.items():
            merged[name] = _merged((merged[name], within)) if name in merged else within
    return merged
