"""Search in a ledger of millions of files: Lance finds the keys, and only one page of rows is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.tables.file_table import (
    FileStatus,
    keyed_files,
    read_files,
    require_source,
    require_status,
    source_url,
    whole_urls,
)
from slackwater.reading.tables.page import Page, first_page, page_of, place_of, require_limit
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.keys import encode_key
from state.tables.ledger_counts import COUNTED, counted, summed
from state.tables.row_selection import Clue

_AFTER_EVERY_PATH = b"\xff"


def find_files(
    store: LanceStateStore,
    catalog: Catalog,
    text: str,
    *,
    source: str | None,
    status: FileStatus | None,
    after: str | None,
    limit: int,
) -> Page:
    """A page of the files with a text in their URL, see `Ledger.find_files`.

    Raises:
        NotFoundError: the source does not exist.
        UsageError: `status`, `after` or `limit` is not valid.
    """
    require_source(source, catalog)
    require_status(status)
    require_limit(limit)
    place, places = place_of(after), _places(text, source, catalog)
    if not any(part for _, part in places) and (source is not None or not text):
        counts = count_files(store)
        for name, value in (("source", source), ("status", status)):
            counts = counts if value is None else counts.filter(pc.equal(counts[name], value))
        parts = keyed_files(store, source=source, status=status, after=place)
        page = first_page(parts, limit, pc.sum(counts["files"], min_count=0).as_py())
        return replace(page, rows=_with_urls(page.rows, catalog))
    found = [
        store.find_keys(table, clues, start=start, end=start + _AFTER_EVERY_PATH)
        for start, part in places
        for table, clues in _clues(part, status)
    ]

    def read(some: Sequence[bytes]) -> pa.Table:
        files = read_files(store, None, keys=some)
        if status is not None:
            files = files.filter(pc.equal(files["status"], status))
        return _with_urls(files, catalog)

    return page_of(found, read, after, limit)


def count_files(store: StateStore) -> pa.Table:
    """The counts of files by source and status, see `Ledger.count_files`.

    Raises:
        StorageError: the root cannot be read.
    """
    counts = [store.count_ledger()]
    keys = store.scan("queue", fields=["replaces"])["key"].to_pylist()
    if keys:
        # A version that is queued again counts as queued, and not by its row in the ledger.
        counts.append(counted(store.scan("ledger", keys=keys, fields=COUNTED), -1))
        counts.append(counted(read_files(store, None, columns=COUNTED, keys=keys)))
    return summed(counts).sort_by([("source", "ascending"), ("status", "ascending")])


def _with_urls(files: pa.Table, catalog: Catalog) -> pa.Table:
    return files.set_column(files.column_names.index("path"), "path", whole_urls(files, catalog))


def _places(text: str, source: str | None, catalog: Catalog) -> list[tuple[bytes, str]]:
    """Source → the text to search for: the rest behind the URL of the source; otherwise all of it."""
    sources = {name: source_url(each.definition) for name, each in catalog.sources.items() if source in (None, name)}
    url = Location(text).url if text.startswith("/") else text
    below = {name: url[len(each) + 1 :] for name, each in sources.items() if url.startswith(f"{each}/")}
    # A text inside the URL of a source matches all of its files.
    within = {name: "" for name, each in sources.items() if text and url.casefold() in each.casefold()}
    parts = below or {**dict.fromkeys(sources, text), **within}
    return [(encode_key(name), part) for name, part in parts.items()]


def _clues(part: str, status: FileStatus | None) -> list[tuple[str, list[Clue]]]:
    in_path = [Clue("path", contains=part)] if part else []
    queued = [Clue("row_offset", above=0)] if status == "reading" else []
    finished = [] if status is None else [Clue("status", equals=status)]
    tables = []
    if status not in ("waiting", "reading"):
        tables.append(("ledger", [*in_path, *finished]))
    if status in (None, "waiting", "reading"):
        tables.append(("queue", [*in_path, *queued]))
    return tables
