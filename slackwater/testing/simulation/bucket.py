"""A bucket whose days are written down in a story."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from actors.messages import FileKey, FileVersion, PathKey
from actors.object_store import ListingPage
from actors.read_errors import ObjectChanged, ObjectVanished
from state.errors import StorageUnavailableError
from state.fingerprint import version_fingerprint


@dataclass(frozen=True)
class Content:
    """What is in a file.

    Args:
        rows: how many.
        bad_row: from this row on the file cannot be read.
        kills: whom reading it kills: `fetch` or `spark`.
    """

    rows: int
    bad_row: int | None = None
    kills: str | None = None

    @property
    def readable_rows(self) -> int:
        """How many rows come before the first that cannot be read."""
        return self.rows if self.bad_row is None else min(self.bad_row, self.rows)


@dataclass(frozen=True)
class StoredObject:
    """One version of an object; `since` grows with everything that happens to the bucket."""

    file: FileVersion
    content: Content
    since: int


class Bucket:
    """All sources of a pipeline.

    Args:
        page_size: objects in a page of a listing.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._objects: dict[PathKey, StoredObject] = {}
        self._last: dict[PathKey, StoredObject] = {}
        self._changes = 0
        self.contents: dict[FileKey, Content] = {}
        self.refusals = 0

    def put(self, source: str, path: str, content: Content, now: datetime) -> None:
        """An object appears, or becomes another one."""
        self._changes += 1
        etag = f'"{self._changes}"'
        version = version_fingerprint(etag, content.rows, now)
        file = FileVersion(source, path, version, etag, content.rows, now)
        self._objects[source, path] = self._last[source, path] = StoredObject(file, content, self._changes)
        self.contents[source, path, version] = content

    def vanish(self, source: str, path: str) -> None:
        """An object goes, if it is there."""
        self._objects.pop((source, path), None)

    def bring_back(self, source: str, path: str) -> None:
        """The last version of an object is there again, unless it never went."""
        last = self._last.get((source, path))
        if last is not None and (source, path) not in self._objects:
            self._changes += 1
            self._objects[source, path] = replace(last, since=self._changes)

    def present(self) -> dict[PathKey, StoredObject]:
        """What is there now."""
        return dict(self._objects)

    def still_present(self, before: Mapping[PathKey, StoredObject]) -> dict[PathKey, FileVersion]:
        """What was there then, and has not changed or been away since."""
        return {path: each.file for path, each in before.items() if self._objects.get(path) == each}

    def refuse(self, requests: int) -> None:
        """So many of the next requests are answered 503."""
        self.refusals += requests

    def page(self, source: str, after: str | None) -> ListingPage | None:
        """The next page of a listing, as the bucket is now; None after the last.

        Raises:
            StorageUnavailableError: the bucket has a bad moment.
        """
        self._answer(source)
        paths = sorted(path for name, path in self._objects if name == source and (after is None or path > after))
        if not paths and after is not None:
            return None
        files = [self._objects[source, path].file for path in paths[: self._page_size]]
        return ListingPage(
            [each.path for each in files],
            [each.etag for each in files],
            [each.size for each in files],
            [each.last_modified for each in files],
            1,
        )

    def read(self, file: FileVersion) -> Content:
        """The content of a version that was listed.

        Raises:
            ObjectVanished, ObjectChanged: it is not there any more.
            StorageUnavailableError: the bucket has a bad moment.
        """
        self._answer(file.source)
        found = self._objects.get((file.source, file.path))
        if found is None:
            raise ObjectVanished(f"{file.path} is no longer there")
        if found.file.version != file.version:
            raise ObjectChanged(f"{file.path} has changed since it was listed")
        return found.content

    def _answer(self, source: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise StorageUnavailableError(f"{source}: the store answered 503; try again later")
