"""Spellings of the columns of a source in a JSON file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from actors.file_errors import UnreadableFile
from actors.formats.text.json_schema import loads
from actors.formats.text.json_text import is_too_large
from actors.schemas.column_names import NameRule, renamed_columns, source_names, unique_names
from actors.settings import ReadLimits


class FileNames:
    """The names of the fields of a file, and the columns of the source that they are.

    A field that is spelled as the column counts; in a record without it, a field whose name differs by case alone.

    Args:
        columns: the columns of the source.
        rule: the match of names.
        names: the names of the fields, in the order of their appearance.

    Raises:
        AmbiguousNames: several fields match one column, and none is spelled as it is.
    """

    def __init__(self, columns: Sequence[str], rule: NameRule, names: Sequence[str]) -> None:
        known = frozenset(columns)
        # The number that a name gets among names in another case does not depend on the order in the file.
        ordered = sorted(names, key=lambda name: name not in known)
        unique = dict(zip(ordered, unique_names(ordered), strict=True))
        spellings = {column: [column] for column in columns}
        rest = []
        for name in names:
            if name not in known and unique[name] in known and unique[name] not in names:
                spellings[unique[name]].append(name)
            elif name not in known:
                rest.append(name)
        fold = str.lower if rule == "any_case" else str
        exact = {fold(name): name for name in known.intersection(names)}
        others = [name for name in rest if fold(name) not in exact]
        try:
            matching = source_names(others, [name for name in columns if fold(name) not in exact], rule)
        except UnreadableFile as error:
            raise AmbiguousNames(error.reason) from error
        for name, column in [*zip(others, matching, strict=True), *((name, exact.get(fold(name))) for name in rest)]:
            if column in spellings and name not in spellings[column]:
                spellings[column].append(name)
        self._spellings = spellings
        self.of_source = frozenset(name for given in spellings.values() for name in given)
        """The names in the file that are columns of the source."""
        self.others = tuple(unique[name] for name in names if name not in self.of_source)
        self.renamed = renamed_columns(ordered, [*unique.values()])

    @property
    def _is_plain(self) -> bool:
        return len(self.of_source) == len(self._spellings)

    def in_file(self, schema: pa.Schema) -> pa.Schema:
        """The columns of the source by all their names in the file."""
        return pa.schema([field.with_name(name) for field in schema for name in self._spellings[field.name]])

    def merged(self, table: pa.Table) -> pa.Table:
        """The columns by their names in the source."""
        if self._is_plain:
            return table
        columns = []
        for given in self._spellings.values():
            column, *others = (table.column(name) for name in given)
            columns.append(pc.coalesce(column, *others) if others else column)
        return pa.Table.from_arrays(columns, names=[*self._spellings])


class AmbiguousNames(Exception):
    """Several fields of a file match one column of its source."""


def names_of(records: Iterable[bytes], limits: ReadLimits, require_time: Callable[[], None]) -> list[str]:
    """The names of the fields of objects, in the order of their appearance; other records are skipped.

    So are records that would take more memory than `max_batch_bytes`.
    """
    names: dict[str, None] = {}
    for record in records:
        require_time()
        if is_too_large(record, limits):
            continue
        try:
            value = loads(record)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            names.update(dict.fromkeys(value))
    return list(names)
