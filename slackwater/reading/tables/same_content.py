"""Files with the same content under several names: each counts in the views."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from actors.file_errors import ObjectChanged, ObjectVanished, UnreadableFile
from actors.files import FileVersion
from actors.objects.object_store import ObjectStore
from slackwater.reading.tables.file_table import file_batches, source_url
from state.errors import StorageError
from state.location import Location
from state.objects.etag import is_strong
from state.store.store import StateStore
from state.tables.catalog import Catalog

SAME_CONTENT_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("content", pa.string()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("status", pa.string()),
        ("rows_read", pa.int64()),
        ("listed_epoch", pa.int64()),
    ]
)
_READ = ("source", "path", "etag", "size", "last_modified", "status", "rows_read", "listed_epoch")
_IN_VIEWS = ("reading", "done", "quarantined")
_CHUNK_BYTES = 1 << 20


def same_content(state: StateStore, catalog: Catalog, *, source: str | None) -> pa.Table:
    """The files of a source with rows in the views whose content another file of the source has, too.

    In a bucket two files are the same if their strong etags and their sizes are equal.  A local directory has no etag
    of a content: files of equal size are read and compared by SHA-256.  Empty files are left out.

    Args:
        source: the name of a source; None for all.

    Returns:
        A table, see `SAME_CONTENT_SCHEMA`, ordered by source, content and path.

    Raises:
        NotFoundError: the source does not exist.
    """
    sizes = _repeated_sizes(state, catalog, source)
    found: list[dict[str, object]] = []
    stores = {
        name: ObjectStore(location)
        for name, each in catalog.sources.items()
        if (location := Location(source_url(each.definition))).is_local
    }
    for batch in file_batches(state, catalog, source=source, columns=_READ):
        for row in batch.filter(pc.is_in(batch["size"], value_set=sizes)).to_pylist():
            if _is_in_views(row):
                found.append({**row, "content": _content(row, stores, catalog)})
    by_content: dict[tuple[object, object, object], list[dict[str, object]]] = {}
    for row in found:
        if row["content"] is not None:
            by_content.setdefault((row["source"], row["content"], row["size"]), []).append(row)
    rows = [row for same in by_content.values() if len({row["path"] for row in same}) > 1 for row in same]
    table = pa.Table.from_pylist(rows, SAME_CONTENT_SCHEMA)
    return table.sort_by([("source", "ascending"), ("content", "ascending"), ("path", "ascending")])


def _repeated_sizes(state: StateStore, catalog: Catalog, source: str | None) -> pa.Array:
    """The sizes that several files have: only these files are compared."""
    parts = [batch["size"] for batch in file_batches(state, catalog, source=source, columns=("size",))]
    counts = pc.value_counts(pa.chunked_array(parts, pa.int64()))
    return counts.field("values").filter(pc.greater(counts.field("counts"), 1))


def _is_in_views(row: Mapping[str, object]) -> bool:
    return bool(row["size"] and row["rows_read"] and row["status"] in _IN_VIEWS)


def _content(row: Mapping[str, object], stores: Mapping[str, ObjectStore], catalog: Catalog) -> str | None:
    """The name of a content; None if it is not known."""
    name, etag = str(row["source"]), str(row["etag"] or "")
    if name not in stores:
        return f"etag {etag}" if is_strong(etag) else None
    path = str(row["path"]).removeprefix(f"{source_url(catalog.sources[name].definition)}/")
    size, modified = row["size"], row["last_modified"]
    assert isinstance(size, int)
    file = FileVersion(name, path, b"", etag, size, modified)  # type: ignore[arg-type]
    digest = hashlib.sha256()
    try:
        for chunk in _chunks(stores[name], file):
            digest.update(chunk)
    except (ObjectChanged, ObjectVanished, UnreadableFile, StorageError):
        return None  # it is not there any more, or not in the version that was read
    return f"sha256 {digest.hexdigest()}"


def _chunks(store: ObjectStore, file: FileVersion) -> Iterator[bytes]:
    stream = store.open(file).stream()
    while chunk := stream.read(_CHUNK_BYTES):
        yield chunk
