"""Directory of Parquet files of a publication, with a manifest that names its files and its epoch.

    _manifest.json                            root, view, epoch, columns, and the files of the epoch
    day=2026-01-31/epoch-<epoch>-<write>-<number>.parquet

A publication notes the names of its files in the manifest before it writes them, and replaces the manifest by a
compare-and-swap when they are complete: that is the commit.  The next publication deletes the noted files of a writer
that died, after it has noted its own write: from then on the dead writer, if it lives after all, cannot commit.
Only files that the manifest names are ever deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import ObjectStore

from slackwater.plugins.publish.leaving_rows import LeavingRows
from slackwater.plugins.publish.partitions import Partitions
from slackwater.plugins.publish.publication import PublishedEpoch
from slackwater.plugins.publish.published_table import (
    FILE_BYTES,
    TableHead,
    check_writable,
    column_types,
    refused_commit,
    require_same_columns,
)
from slackwater.plugins.publish.targets import ParquetFiles
from slackwater.reading.changes.view_changes import ViewChange
from state.clock import Clock
from state.equality.exact_rows import exact_rows, with_nulls
from state.errors import CommitRefusedError, SchemaError
from state.json_document import json_of, moment_of
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.objects.stored_object import read_object
from state.ownership.conditional_file import ConditionalFile, FileChangedError
from state.places.marker import Marker, write_marker
from state.removal.evidence import ListedFiles
from state.removal.objects import create_same, delete

MANIFEST = "_manifest.json"
_OURS = re.compile(r"(?:[^/]+=[^/]*/)*epoch-\d+-\d+-\d+\.parquet")
_MOST_BUFFERED_BYTES = 4 * FILE_BYTES


@dataclass(frozen=True)
class _Manifest:
    """The content of `_manifest.json`.

    Args:
        published: the root, the view and the epoch; epoch 0 until the first publication is complete.
        columns: name → type of each column of the view.
        partition_by: the columns that are in the names of directories.
        files: the paths of the files of the epoch, below the directory.
        replaced: path → the time at which its rows were rewritten.
        write: number of the last write.
        is_writing: a write has begun, and has not ended.
        planned: the paths of the files of that write; each is noted before the file is written.
    """

    published: PublishedEpoch
    columns: dict[str, str]
    partition_by: tuple[str, ...]
    files: tuple[str, ...] = ()
    replaced: tuple[tuple[str, datetime], ...] = ()
    write: int = 0
    is_writing: bool = False
    planned: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        document = {
            **self.published.properties,
            "columns": self.columns,
            "partition_by": self.partition_by,
            "files": self.files,
            "replaced": {path: at.isoformat() for path, at in self.replaced},
            "write": self.write,
            "is_writing": self.is_writing,
            "planned": self.planned,
        }
        return json.dumps(document, indent=1, ensure_ascii=False).encode()

    @classmethod
    def of_json(cls, content: bytes) -> _Manifest | None:
        """None if the content is not a manifest of ours."""
        try:
            document: dict[str, Any] = json_of(content)
            published = PublishedEpoch.of(document)
            if published is None:
                return None
            manifest = cls(
                published,
                {str(name): str(kind) for name, kind in document["columns"].items()},
                tuple(map(str, document["partition_by"])),
                tuple(map(str, document["files"])),
                tuple((path, moment_of(at)) for path, at in document["replaced"].items()),
                int(document["write"]),
                bool(document["is_writing"]),
                tuple(map(str, document.get("planned", ()))),
            )
            paths = (*manifest.files, *(path for path, _ in manifest.replaced), *manifest.planned)
            return manifest if all(map(_OURS.fullmatch, paths)) else None
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


class PublishedParquetFiles:
    """See `PublishedTable`.

    Args:
        clock: gives the times at which rows are rewritten.
    """

    def __init__(self, target: ParquetFiles, clock: Clock) -> None:
        self._target, self._clock = target, clock
        self._location = target.location
        self._file = ConditionalFile(self._location, MANIFEST)
        self._partition_by = tuple(target.partition_by)
        with self._errors():
            found = self._file.read()
        self._version = None if found is None else found.version
        self._manifest = None if found is None else _Manifest.of_json(found.content)
        self._dead: tuple[str, ...] = ()

    @property
    def locations(self) -> tuple[Location, ...]:
        return (self._location,)

    def head(self) -> TableHead | None:
        if self._manifest is None:
            if self._version is not None:
                return TableHead("", None, f"{MANIFEST} has other content")
            foreign = next((path for path in self._paths() if path.endswith(".parquet")), None)
            return None if foreign is None else TableHead("", None, f"it has {foreign} without a manifest")
        return TableHead(_version(self._manifest), self._manifest.published, _version(self._manifest))

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self._partition_by

    def require_fit(self, schema: pa.Schema) -> None:
        Partitions(self._partition_by, schema)
        for field in schema:
            if "duration" in str(field.type):  # Arrow writes it as a number that only Arrow reads as a duration
                raise SchemaError(f"column {field.name!r} cannot be published to Parquet: it has no {field.type}")
        manifest = self._manifest
        if manifest is None or not manifest.published.epoch:
            return
        if manifest.partition_by != self._partition_by:
            raise SchemaError(
                f"{self._target} is partitioned by {', '.join(manifest.partition_by) or 'no column'}, and not by "
                f"{', '.join(self._partition_by) or 'none'}: publish to a new directory"
            )
        found = {name: kind.replace(" not null", "") for name, kind in manifest.columns.items()}
        require_same_columns(self._target, column_types(schema), found)

    def require_writable(self) -> None:
        check_writable(self._location)

    def mark(self, marker: Marker) -> None:
        write_marker(self._location, marker)

    def replace(self, rows: pa.RecordBatchReader, epoch: PublishedEpoch) -> str:
        before = () if self._manifest is None else self._manifest.files
        manifest = self._begun(epoch, rows.schema)
        tables = (pa.Table.from_batches([batch]) for batch in rows)
        files = self._written(tables, Partitions(self._partition_by, rows.schema), epoch, manifest)
        return self._commit(manifest, epoch, rows.schema, files, before)

    def change(self, change: ViewChange, epoch: PublishedEpoch) -> str:
        before = () if self._manifest is None else self._manifest.files
        partitions = Partitions(self._partition_by, change.rows.schema)
        leaving = LeavingRows(change)
        touched = self._touched(leaving, partitions, before) if leaving else {}
        leaving.require_found(self._target)
        manifest = self._begun(epoch, change.rows.schema)
        kept = (self._read(path, partitions).filter(stays) for path, stays in touched.items())
        files = self._written((*kept, change.rows), partitions, epoch, manifest)
        stay = [path for path in before if path not in touched]
        return self._commit(manifest, epoch, change.rows.schema, [*stay, *files], touched)

    def maintain(self) -> None:
        manifest = self._manifest
        if manifest is not None and not manifest.is_writing and self._expired(manifest):
            self._swap(self._without_expired(manifest))

    def _touched(self, leaving: LeavingRows, partitions: Partitions, files: Iterable[str]) -> dict[str, pa.Array]:
        """The files that have leaving rows, each with the mask of the rows that stay."""
        masks = ((path, leaving.staying(self._read(path, partitions, leaving.columns))) for path in files)
        return {path: stays for path, stays in masks if stays.false_count}

    def _begun(self, epoch: PublishedEpoch, schema: pa.Schema) -> _Manifest:
        """The manifest of a write that begins.

        The files that a dead writer has planned are noted as replaced, and stay noted: the writer, if it lives after
        all, may still write one of them.
        """
        before = self._manifest
        if before is None:
            before = _Manifest(replace(epoch, epoch=0), column_types(schema), self._partition_by)
        now = self._clock.now()
        self._dead = before.planned
        replaced = (*self._without_expired(before).replaced, *((path, now) for path in before.planned))
        return replace(before, replaced=replaced, write=before.write + 1, is_writing=True, planned=())

    def _note(self, manifest: _Manifest) -> None:
        """Replaces the manifest; from then on a dead writer cannot commit, and the files that it planned go."""
        self._swap(manifest)
        self._delete(manifest, self._dead)
        self._dead = ()

    def _commit(
        self, noted: _Manifest, epoch: PublishedEpoch, schema: pa.Schema, files: Iterable[str], gone: Iterable[str]
    ) -> str:
        now = self._clock.now()
        manifest = replace(
            noted,
            published=epoch,
            columns=column_types(schema),
            partition_by=self._partition_by,
            files=tuple(files),
            replaced=(*noted.replaced, *((path, now) for path in gone)),
            is_writing=False,
            planned=(),
        )
        self._note(manifest)
        self._delete(manifest, self._expired(manifest))
        return _version(manifest)

    def _expired(self, manifest: _Manifest) -> list[str]:
        until = self._clock.now() - timedelta(seconds=self._target.keep_s)
        return [path for path, at in manifest.replaced if at <= until]

    def _without_expired(self, manifest: _Manifest) -> _Manifest:
        """Deletes the expired files; only then the manifest may forget them."""
        expired = set(self._expired(manifest))
        self._delete(manifest, expired)
        return replace(manifest, replaced=tuple(each for each in manifest.replaced if each[0] not in expired))

    def _swap(self, manifest: _Manifest) -> None:
        content = manifest.to_json()
        with self._errors():
            try:
                self._file.replace(content, self._version)
            except FileChangedError:
                raise refused_commit(self._target) from None
            found = self._file.read()
        if found is None or found.content != content:
            raise refused_commit(self._target)
        self._version, self._manifest = found.version, manifest

    def _written(
        self, tables: Iterable[pa.Table], partitions: Partitions, epoch: PublishedEpoch, noted: _Manifest
    ) -> list[str]:
        """Writes the rows; returns the paths."""
        paths = list[str]()
        buffers: dict[str, list[pa.Table]] = {}
        sizes: dict[str, int] = {}

        def flush(directories: Iterable[str]) -> None:
            planned = {}
            for directory in directories:
                planned[directory] = f"{directory}epoch-{epoch.epoch}-{noted.write}-{len(paths)}.parquet"
                paths.append(planned[directory])
            if planned:
                self._note(replace(noted, planned=tuple(paths)))
            for directory, path in planned.items():
                rows = pa.concat_tables(buffers.pop(directory))
                self._write(path, exact_rows(rows, with_nulls(rows.schema)))
                del sizes[directory]

        for table in tables:
            for directory, part in partitions.split(table):
                buffers.setdefault(directory, []).append(part)
                sizes[directory] = sizes.get(directory, 0) + part.nbytes
                if sizes[directory] >= FILE_BYTES:
                    flush([directory])
            while sum(sizes.values()) >= _MOST_BUFFERED_BYTES:
                flush([max(sizes, key=lambda each: sizes[each])])
        flush([*buffers])
        return paths

    def _write(self, path: str, rows: pa.Table) -> None:
        """Writes a file of a planned name.

        Raises:
            CommitRefusedError: another program has a file of this name: it stays, and the plan forgets the name.
        """
        content = BytesIO()
        pq.write_table(rows, content, compression="zstd")
        with self._errors():
            try:
                create_same(self._client(), self._location, path, content.getvalue())
                return
            except AlreadyExistsError:
                pass
        manifest = self._manifest
        assert manifest is not None, "the write is noted"
        self._swap(replace(manifest, planned=tuple(each for each in manifest.planned if each != path)))
        raise CommitRefusedError(
            f"{self._target} has a file {path} of another program, which stays; nothing was published; publish to a "
            "new directory"
        )

    def _read(self, path: str, partitions: Partitions, columns: list[str] | None = None) -> pa.Table:
        with self._errors():
            try:
                content = read_object(self._client(), self._location, path).content
            except (FileNotFoundError, NotFoundError):
                raise CommitRefusedError(
                    f"{self._target} lacks {path}, which its manifest names: another program has deleted it; nothing "
                    "was written; publish to a new directory"
                ) from None
        return partitions.whole(path, pq.ParquetFile(pa.BufferReader(pa.py_buffer(content))), columns)

    def _paths(self) -> Iterator[str]:
        """The objects below the directory."""
        if self._location.is_local and not self._location.path.is_dir():
            return
        with self._errors():
            for batch in obstore.list(self._client()):
                yield from (str(each["path"]) for each in batch)

    def _delete(self, manifest: _Manifest, paths: Iterable[str]) -> None:
        """Deletes files that a manifest names as replaced, or as files of a writer that died."""
        used = frozenset(manifest.files)
        listed = frozenset(path for path, _ in manifest.replaced) - used
        evidence = ListedFiles(self._location, _version(manifest), listed)
        for path in paths:
            with self._errors(), suppress(FileNotFoundError, NotFoundError):  # deleted before
                delete(evidence, [path], self._client())

    def _client(self) -> ObjectStore:
        return object_client(self._location)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise storage_error(error, self._location) from error


def _version(manifest: _Manifest) -> str:
    return f"write {manifest.write}"
