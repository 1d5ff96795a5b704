"""A bucket in memory: objects come, change, go and return as a story says."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from actors.file_errors import ObjectChanged, ObjectVanished
from actors.files import FileKey, FileVersion, PathKey
from actors.objects.listing_page import ListingPage
from actors.rows import BadRecord, Rows
from state.errors import StorageUnavailableError
from state.places.marker import MARKER
from state.tables.fingerprint import delivery_fingerprint, version_fingerprint
from tests.simulation.world.event_queue import EventQueue
from tests.simulation.world.file_rows import LACKED, FileRows, Span, event_time_us, lacks_column


@dataclass(frozen=True)
class Content:
    """The content of a file.

    Args:
        rows: number of rows.
        bad_row: from this row on the file cannot be read.
        kills: the victim of reading it: `fetch` or `spark`.
        bad_records: rows that do not fit.
        kill_row: the row that kills.
        fails: the view whose own expression fails over `kill_row`; empty for none.
        is_mended: whether `bad_row` can be read by now: a key that was missing is there, a store answers again.
    """

    rows: int
    bad_row: int | None = None
    kills: str | None = None
    bad_records: frozenset[int] = frozenset()
    kill_row: int = 0
    fails: str = ""
    is_mended: bool = False

    @property
    def readable_rows(self) -> int:
        """Number of rows before the first that cannot be read."""
        return self.rows if self.bad_row is None or self.is_mended else min(self.bad_row, self.rows)

    def is_unreadable_at(self, row: int) -> bool:
        """True if reading from a row on ends in an error at once."""
        return self.bad_row is not None and not self.is_mended and row >= self.bad_row

    def kills_in(self, victim: str, start: int, end: int) -> bool:
        """True if reading the rows `start` to `end` (exclusive) ends the victim."""
        return self.kills == victim and start <= self.kill_row < end

    def fails_in(self, view: str, start: int, end: int) -> bool:
        """True if a view fails over the rows `start` to `end` (exclusive)."""
        return self.fails == view and start <= self.kill_row < end

    def good_rows(self, end: int) -> tuple[int, ...]:
        """The rows before `end` that fit."""
        return tuple(row for row in range(end) if row not in self.bad_records)

    def records(self, file: FileKey, start: int, end: int, columns: Sequence[str]) -> Rows:
        """The rows `start` to `end` (exclusive), as a reader yields them with some columns."""
        bad = tuple(BadRecord(row, b"x", "not a number") for row in sorted(self.bad_records) if start <= row < end)
        borders = [start - 1, *(each.row for each in bad), end]
        spans = tuple(Span(file, before + 1, after) for before, after in itertools.pairwise(borders))
        spans = tuple(span for span in spans if span.start < span.end)
        high = max((event_time_us(file, span.end - 1) for span in spans), default=None)
        missing = (LACKED,) if lacks_column(file[1]) else ()
        return Rows(FileRows(spans, columns), start, bad, missing=missing, event_high=high)


@dataclass(frozen=True)
class StoredObject:
    """One version of an object; `since` grows with everything that happens to the bucket."""

    file: FileVersion
    content: Content
    since: int


@dataclass(frozen=True)
class Gap:
    """Objects that a listing lacks although they are there: as of an unmounted disk, or a wrong answer.

    Args:
        paths: the paths of its source; empty for all of them.
    """

    paths: frozenset[str] = frozenset()

    def lacks(self, path: str) -> bool:
        """Whether the listing lacks an object."""
        return not self.paths or path in self.paths


BucketFault: TypeAlias = Literal["cut", "phantom", "refuse", "repeat", "stale"]
"""A wrong answer of the bucket.

* `cut`: a deletion is carried out, and its answer is lost.
* `phantom`: a deletion is acknowledged, and not carried out.
* `refuse`: a request is answered 503.
* `repeat`: a listing shows the last object of each page again on the following page.
* `stale`: the first read of a replaced object returns the version before.
"""


def is_version(found: FileVersion, file: FileVersion) -> bool:
    """Whether an object is a version of a file, as a listing or a repeated delivery names it."""
    return file.version in (found.version, delivery_fingerprint(found.version, found.last_modified))


class Bucket:
    """All sources of a pipeline.

    `left` has the paths whose objects have ever gone; `queues` are told of every change.

    Args:
        page_size: objects in a page of a listing.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._objects: dict[PathKey, StoredObject] = {}
        self._last: dict[PathKey, StoredObject] = {}
        self._changes = 0
        self.left: set[PathKey] = set()
        self.queues: Mapping[str, EventQueue] = {}
        # Of each path its versions, and None where it went, each with the number of the change.
        self.history: dict[PathKey, list[tuple[int, bytes | None]]] = {}
        self.contents: dict[FileKey, Content] = {}
        # The number of the coming requests with each fault.
        self.faults = Counter[BucketFault]()
        self._gaps: dict[str, deque[Gap]] = {}
        # What listings have lacked so far.
        self.gaps: list[tuple[str, Gap]] = []
        # The files of tables of other programs, which listings show as if they were of a source.
        self._mounted: dict[PathKey, FileVersion] = {}
        self.foreign_paths: set[PathKey] = set()
        self._deliveries: dict[bytes, bytes] = {}
        self._before: dict[PathKey, StoredObject | None] = {}
        # The number of writes of each version.
        self.written = Counter[FileKey]()
        # The archive of moved files: all of its objects, the moved files, and the objects of other programs.
        self.archived: dict[PathKey, tuple[bytes, Content]] = {}
        self.moved: dict[PathKey, tuple[bytes, Content]] = {}
        self.foreign: dict[PathKey, tuple[bytes, Content]] = {}

    def end_faults(self) -> None:
        """Every request is answered as the bucket is from now on."""
        self.faults.clear()
        self.show()
        self.unmount()

    def put(self, source: str, path: str, content: Content, now: datetime) -> None:
        """An object appears, or becomes another one."""
        self._changes += 1
        etag = f'"{self._changes}"'
        version = version_fingerprint(etag, content.rows, now)
        file = FileVersion(source, path, version, etag, content.rows, now)
        self._before[source, path] = self._objects.get((source, path))
        self._objects[source, path] = self._last[source, path] = StoredObject(file, content, self._changes)
        self._note_content(file, content)
        self.written[source, path, version] += 1
        self._notify(source, path)

    def mend(self, source: str, path: str) -> None:
        """The version of an object that is there can be read to its end from now on."""
        found = self._objects.get((source, path))
        if found is not None:
            mended = replace(found, content=replace(found.content, is_mended=True))
            self._objects[source, path] = self._last[source, path] = mended
            self._note_content(found.file, mended.content)

    def vanish(self, source: str, path: str) -> None:
        """An object goes, if it is there."""
        if self._objects.pop((source, path), None) is not None:
            self._changes += 1
            self.left.add((source, path))
            self._notify(source, path)

    def bring_back(self, source: str, path: str) -> None:
        """The last version of an object is there again, unless it never went."""
        last = self._last.get((source, path))
        if last is not None and (source, path) not in self._objects:
            self._changes += 1
            self._objects[source, path] = replace(last, since=self._changes)
            self._notify(source, path)

    def mount(self, source: str, directory: str, now: datetime) -> None:
        """A table of another program appears below a source, by a link or a mount: its marker and a file."""
        for name in (MARKER, "part"):
            self._changes += 1
            file = FileVersion(source, f"{directory}/{name}", b"%d" % self._changes, "", 1, now)
            self._mounted[source, file.path] = file
            self.foreign_paths.add((source, file.path))

    def unmount(self) -> None:
        """The user removes all such links and mounts."""
        self._mounted.clear()

    def put_again(self, source: str, path: str, now: datetime) -> None:
        """The last version of an object is written once more, by the same bytes: a new object with the same etag."""
        last = self._last.get((source, path))
        if last is not None:
            self._changes += 1
            file = replace(last.file, last_modified=now)
            self._before[source, path] = self._objects.get((source, path))
            self._objects[source, path] = self._last[source, path] = StoredObject(file, last.content, self._changes)
            self._note_content(file, last.content)
            self.written[source, path, file.version] += 1
            self._notify(source, path)

    def remove(self, file: FileVersion) -> None:
        """The request to delete a version arrives; it may be acknowledged, and not carried out."""
        if not self.is_faulty("phantom"):
            self.vanish(file.source, file.path)

    def archive(self, file: FileVersion, content: Content) -> bool:
        """Copies a file to the archive, unless another object is there; False then."""
        copy = (file.version, content)
        return self.archived.setdefault((file.source, file.path), copy) == copy

    def put_into_archive(self, source: str, path: str) -> None:
        """Another program puts an object where a file would be moved to."""
        if (source, path) not in self.archived:
            self.archived[source, path] = self.foreign[source, path] = (b"foreign", Content(1))

    def present(self) -> dict[PathKey, StoredObject]:
        """The objects that are there now."""
        return dict(self._objects)

    def still_present(self, before: Mapping[PathKey, StoredObject]) -> dict[PathKey, FileVersion]:
        """The objects of `before` that have neither changed nor been away since."""
        return {path: each.file for path, each in before.items() if self._objects.get(path) == each}

    def untold(self) -> set[PathKey]:
        """The paths whose event was lost: a listing must show them."""
        return {path for queue in self.queues.values() for path, _ in queue.lost}

    def is_faulty(self, fault: BucketFault) -> bool:
        """Returns whether a request has the fault, and counts the request."""
        is_faulty = self.faults[fault] > 0
        self.faults[fault] -= is_faulty
        return is_faulty

    def hide(self, source: str, paths: frozenset[str], listings: int) -> None:
        """Each of the next listings of a source lacks these paths; all of them if there are none."""
        self._gaps.setdefault(source, deque()).extend([Gap(paths)] * listings)

    def show(self) -> None:
        """Listings that begin from now on lack nothing."""
        self._gaps.clear()

    def begin_listing(self, source: str) -> Gap | None:
        """A listing begins; returns what it lacks."""
        gaps = self._gaps.get(source)
        if not gaps:
            return None
        gap = gaps.popleft()
        self.gaps.append((source, gap))
        return gap

    def page(
        self, source: str, after: str | None, gap: Gap | None = None, *, repeats: bool = False
    ) -> ListingPage | None:
        """The next page of a listing, as the bucket is now; None after the last.

        Args:
            source: the source that is listed.
            after: the last path of the page before.
            gap: the files that the listing lacks.
            repeats: whether the page shows the last object of the page before again.

        Raises:
            StorageUnavailableError: the bucket has a bad moment.
        """
        self._answer(source)
        known = {path: each.file for (name, path), each in self._objects.items() if name == source}
        known |= {path: each for (name, path), each in self._mounted.items() if name == source}
        paths = sorted(path for path in known if after is None or path > after)
        if gap is not None:
            paths = [path for path in paths if not gap.lacks(path)]
        if not paths and after is not None:
            return None
        again = [after] if repeats and after in known else []
        files = [known[path] for path in (*again, *paths[: self._page_size])]
        return ListingPage.of(
            [each.path for each in files],
            [each.etag for each in files],
            [each.size for each in files],
            [each.last_modified for each in files],
            1,
        )

    def find(self, source: str, path: str) -> FileVersion | None:
        """An object as it is now; None without one.

        Raises:
            StorageUnavailableError: the bucket has a bad moment.
        """
        self._answer(source)
        found = self._objects.get((source, path))
        return None if found is None else found.file

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
        if not is_version(found.file, file):
            raise ObjectChanged(f"{file.path} has changed since it was listed")
        before = self._before.get((file.source, file.path))
        if before is not None and before.file.etag != found.file.etag and self.is_faulty("stale"):
            raise ObjectChanged(f"{file.path} has changed since it was listed")
        return found.content

    def _note_content(self, file: FileVersion, content: Content) -> None:
        """Notes the content by both names of a version: a run that has deleted the object names it by its delivery."""
        delivery = delivery_fingerprint(file.version, file.last_modified)
        self._deliveries[delivery] = file.version
        for version in (file.version, delivery):
            self.contents[file.source, file.path, version] = content

    def listed_version(self, version: bytes) -> bytes:
        """The version by which a listing names the content of a version of the ledger, which may name a delivery."""
        return self._deliveries.get(version, version)

    def _notify(self, source: str, path: str) -> None:
        found = self._objects.get((source, path))
        version = None if found is None else found.file.version
        self.history.setdefault((source, path), []).append((self._changes, version))
        if source in self.queues:
            self.queues[source].on_change(path, None if found is None else found.file.size, self._changes)

    def _answer(self, source: str) -> None:
        if self.is_faulty("refuse"):
            raise StorageUnavailableError(f"{source}: the store answered 503; try again later")
