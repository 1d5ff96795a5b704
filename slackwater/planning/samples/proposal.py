"""Proposal of the sources below a URL, from the names and a few of the files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import NamedTuple

import pyarrow as pa

from actors.file_errors import ObjectChanged, ObjectVanished, UnreadableFile
from actors.files import FileVersion
from actors.formats.options import Csv
from actors.formats.registry import BuiltIn, Format
from actors.objects.object_store import RETRY_FOR_A_USER_S, ObjectStore
from actors.reading.source_reader import SourceReader
from actors.rows import Offset, Rows
from actors.settings import FetchSettings
from actors.sources.path_filter import PathFilter
from actors.sources.source import SourceDefinition
from actors.sources.source_schema import SAMPLE_FILES
from slackwater.planning.samples.found_format import found_format, written_format
from slackwater.planning.samples.sample import sample_of
from slackwater.planning.shown_schema import listed_files, shown_schema
from state.errors import SchemaError, SettingsError, UsageError
from state.location import Location
from state.places.table_signs import TableSign, table_signs

_MOST_NAMES = 10_000
_MOST_KINDS = 20
_COMPRESSION = r"(?:\.(?:gz|gzip|zst|zstd|bz2|lz4|xz))?"
_SUFFIX = re.compile(rf"(?i)\.[a-z]\w{{0,11}}{_COMPRESSION}$")
# The directories of `2026-11-12/a.csv` and `day=1/a.csv` hold the files of one source.
_OF_ONE_SOURCE = re.compile(r"[\d._T:Z-]+|.*=.*")
_WORD = re.compile(r"[A-Za-z0-9]+")
# Reserved words of SQL that are likely names of directories; a view could not name such a source without quotes.
_RESERVED = frozenset(
    _WORD.findall(
        "all and any as both case check collate column create current_date distinct else end except fetch filter for "
        "foreign from full grant group having in inner intersect into is join left like minus natural not null on only "
        "or order outer overlaps primary references right select semi session_user some sql table then time to "
        "trailing union unique unknown user using when where with"
    )
)
_OF_A_KEY = re.compile(r"(?i)(?:.*_)?(?:id|key|uuid|guid)|.+Id")


@dataclass(frozen=True)
class ProposedSource:
    """The declaration of a source that suits its files.

    Args:
        source: the source, with the types of its columns.
        files: the listed files that match its pattern.
        opened: the files that were opened as a trial.
        read: the rows that were read of them.
        faults: the reasons of the bad records and unreadable files of the trial, one line each.
        lacking: the columns that some of the opened files lack.
        keys: the columns that are named as keys, and that have another value in each row of the trial.
    """

    source: SourceDefinition
    files: int
    opened: int
    read: int
    faults: tuple[str, ...]
    lacking: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Proposal:
    """The sources below a URL.

    Args:
        sources: the sources, the one with the most files first.
        others: the files that no source reads: the path of one file, and the reason.
    """

    sources: tuple[ProposedSource, ...]
    others: tuple[str, ...]


def propose(location: Location, settings: FetchSettings = FetchSettings()) -> Proposal:
    """Proposes the sources below a URL from its first `10,000` names, and at most eight files of each kind.

    A kind has one directory directly below the URL and one suffix.  The kinds of a suffix are one source if their files
    have the same columns.

    Raises:
        StorageError, UsageError: the URL cannot be listed.
    """
    store = ObjectStore(
        location,
        requests=settings.requests,
        max_attempts=settings.max_attempts,
        retry_within_s=RETRY_FOR_A_USER_S,
    )
    # A store that does not answer ends this first request.
    files, others = _names(store)
    if (above := store.enclosing_table()) is not None:
        return Proposal((), (f"it is in {above}",))
    kinds = _kinds(files)
    proposed = dict[tuple[str, str], ProposedSource]()
    for (directory, suffix), files in list(kinds.items())[:_MOST_KINDS]:
        made = _proposed(location, _pattern(directory, suffix), _opened(store, files), files, settings)
        if isinstance(made, str):
            others.append(made)
        else:
            proposed[directory, suffix] = made
    if len(kinds) > _MOST_KINDS:
        others.append(f"{len(kinds) - _MOST_KINDS:,} more kinds of files: name a directory further below")
    sources = sorted(_merged(store, location, proposed, kinds, settings), key=lambda each: -each.files)
    return Proposal(_named(sources, location), tuple(others))


def _names(store: ObjectStore) -> tuple[list[FileVersion], list[str]]:
    """The first files, and the names and tables that are left out, each with its reason."""
    files, skipped, hidden, tables = list[FileVersion](), list[str](), PathFilter(), dict[str, TableSign]()
    for page in store.list_pages():
        skipped += [f"{each.path}: {each.reason}" for each in page.skipped]
        for paths in page.table["path"].chunks:
            tables |= {sign.directory: sign for sign in table_signs(paths)}
        files += [file for batch in page.table.to_batches() for file in listed_files("", hidden.taken(batch))]
        if len(files) >= _MOST_NAMES:
            break
    inside = tuple(f"{directory}/" if directory else "" for directory in tables)
    others = [f"{sign.directory or '.'}: it is {sign.kind}: read {sign.instead}" for sign in tables.values()]
    apart = [file for file in files if not file.path.startswith(inside)]
    return apart, others[:_MOST_KINDS] + skipped[:_MOST_KINDS]


def _kinds(files: Iterable[FileVersion]) -> dict[tuple[str, str], list[FileVersion]]:
    """The files by directory directly below the URL, and by suffix."""
    kinds = dict[tuple[str, str], list[FileVersion]]()
    for file in files:
        directory, _, _ = file.path.rpartition("/")
        top = directory.partition("/")[0]
        suffix = _SUFFIX.search(file.path.rpartition("/")[2])
        key = "" if _OF_ONE_SOURCE.fullmatch(top) else top, suffix.group() if suffix else ""
        kinds.setdefault(key, []).append(file)
    return kinds


class _Opened(NamedTuple):
    """Some files of a kind.

    Args:
        format: the format of most of them; None if none of them can be read.
        files: the files of this format.
        faults: the path of each other file, and the reason.
    """

    format: BuiltIn | None
    files: list[FileVersion]
    faults: list[str]


def _opened(store: ObjectStore, files: Sequence[FileVersion]) -> _Opened:
    """Opens at most eight files, evenly spread over the names.

    Args:
        files: at least one file, in the order of names.
    """
    found, faults = list[tuple[FileVersion, BuiltIn]](), list[str]()
    for file in _spread(files):
        sample = sample_of(store.open(file))
        format = sample if isinstance(sample, str) else found_format(sample)
        if isinstance(format, str):
            faults.append(f"{file.path}: {format}")
        else:
            found.append((file, format))
    if not found:
        return _Opened(None, [], faults)
    # The files of a format may differ in options that only a value shows, such as the form of dates.
    dialect, _ = Counter(_dialect(format) for _, format in found).most_common(1)[0]
    own = [(file, format) for file, format in found if _dialect(format) == dialect]
    most, _ = Counter(format for _, format in own).most_common(1)[0]
    faults += [
        f"{file.path}: it looks like {written_format(format)}, and most files look like {written_format(most)}"
        for file, format in found
        if _dialect(format) != dialect
    ]
    return _Opened(most, [file for file, _ in own], faults)


def _spread(files: Sequence[FileVersion]) -> list[FileVersion]:
    if len(files) <= SAMPLE_FILES:
        return list(files)
    return [files[number * (len(files) - 1) // (SAMPLE_FILES - 1)] for number in range(SAMPLE_FILES)]


def _dialect(format: Format) -> tuple[object, ...]:
    """The options that decide whether two files are read by one source."""
    if not isinstance(format, Csv):
        return (type(format),)
    return Csv, format.delimiter, format.skip_rows, format.comment, format.escape, format.encoding


def _proposed(
    location: Location, pattern: str, opened: _Opened, files: Sequence[FileVersion], settings: FetchSettings
) -> ProposedSource | str:
    if opened.format is None:
        return opened.faults[0]
    source = SourceDefinition(name="files", location=location, format=opened.format, pattern=pattern)
    try:
        shown = shown_schema(source, settings, opened.files)
    except SchemaError as error:
        return f"{opened.files[0].path}: {error}"
    schema = shown.schema
    if schema is None:
        return next(iter(shown.faults), f"{opened.files[0].path}: no file of its kind has a record")
    source = replace(source, schema=schema)
    rows, more = _trial(SourceReader(source, schema, settings), schema, opened.files)
    table = pa.concat_tables(each.table for each in rows) if rows else schema.empty_table()
    return ProposedSource(
        source,
        files=len(files),
        opened=len(opened.files),
        read=table.num_rows,
        faults=tuple(dict.fromkeys([*opened.faults, *shown.faults, *more])),
        lacking=tuple(dict.fromkeys(name for each in rows for name in each.missing)) if source.shows_columns else (),
        keys=tuple(name for name in schema.names if _OF_A_KEY.fullmatch(name) and _is_unique(table[name])),
    )


def _trial(reader: SourceReader, schema: pa.Schema, files: Sequence[FileVersion]) -> tuple[list[Rows], list[str]]:
    """The first rows of each file, and the reasons of the bad records."""
    rows, faults = list[Rows](), list[str]()
    for file in files:
        try:
            piece, _ = reader.open(file).next_piece(schema, Offset())
        except (ObjectChanged, ObjectVanished):
            faults.append(f"{file.path}: it was changed or deleted while it was read")
            continue
        except (SchemaError, UnreadableFile) as error:
            faults.append(f"{file.path}: {error}")
            continue
        rows.append(piece)
        faults += [f"{file.path}: {bad.reason}" for bad in piece.bad[:1]]
    return rows, faults


def _is_unique(column: pa.ChunkedArray) -> bool:
    if not len(column) or column.null_count or pa.types.is_nested(column.type):
        return False
    return len(column.unique()) == len(column)


def _merged(
    store: ObjectStore,
    location: Location,
    proposed: Mapping[tuple[str, str], ProposedSource],
    kinds: Mapping[tuple[str, str], list[FileVersion]],
    settings: FetchSettings,
) -> list[ProposedSource]:
    """One source for each suffix whose files have the same columns and format, else one for each directory."""
    sources = list[ProposedSource]()
    for suffix in dict.fromkeys(suffix for _, suffix in proposed):
        own = [each for (_, other), each in proposed.items() if other == suffix]
        files = [file for (_, other), those in kinds.items() if other == suffix for file in those]
        columns = {(_dialect(each.source.format), frozenset(_names_of(each.source.schema))) for each in own}
        if len(own) == 1 or len(columns) > 1:
            sources += own
            continue
        made = _proposed(location, _pattern("", suffix), _opened(store, _mixed(kinds, suffix)), files, settings)
        sources.append(own[0] if isinstance(made, str) else made)
    return sources


def _mixed(kinds: Mapping[tuple[str, str], list[FileVersion]], suffix: str) -> list[FileVersion]:
    """The first file of each directory, then the second of each, and so on."""
    rounds = zip_longest(*(files[:SAMPLE_FILES] for (_, other), files in kinds.items() if other == suffix))
    return [file for files in rounds for file in files if file is not None]


def _names_of(schema: pa.Schema | None) -> list[str]:
    return [] if schema is None else [name.lower() for name in schema.names]


def _pattern(directory: str, suffix: str) -> str:
    below = re.sub(r"([*?\[\]{}\\])", r"\\\1", directory) + "/**" if directory else "**"
    return f"{below}/*{suffix}" if suffix else below


def _named(sources: Sequence[ProposedSource], location: Location) -> tuple[ProposedSource, ...]:
    """The sources with a name each: of their directory, or of the URL."""
    taken, named = set[str](), []
    for each in sources:
        directory, _, rest = each.source.pattern.partition("/")
        base = identifier(directory if rest and directory != "**" else location.url.rstrip("/").rpartition("/")[2])
        suffix = identifier(each.source.pattern.rpartition(".")[2])
        names = [base, f"{base}_{suffix}", *(f"{base}_{number}" for number in range(2, len(sources) + 2))]
        name = next(name for name in names if name not in taken)
        taken.add(name)
        named.append(replace(each, source=replace(each.source, name=name)))
    return tuple(named)


def identifier(text: str) -> str:
    """A name like a text: letters, digits and underscores, with a letter first."""
    name = "_".join(_WORD.findall(text)).lower()
    return name if name[:1].isalpha() and name not in _RESERVED else f"files_{name}".rstrip("_")


def location_of(text: str) -> Location:
    """The location of an argument of the command line.

    Raises:
        UsageError: the text is not a URL or directory.
    """
    try:
        return Location(text)
    except SettingsError as error:
        raise UsageError(str(error)) from None
