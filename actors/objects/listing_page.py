"""Page of a listing: objects with path, etag, size and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from actors.files import microseconds_of, time_of

PAGE_NAMES = 1_000
"""The most names of a page, as in S3."""

LISTED = pa.schema([("path", pa.string()), ("etag", pa.string()), ("size", pa.int64()), ("modified_us", pa.int64())])
"""Columns of an object.  The path is relative to the location.  The etag has the normal form of `state.objects.etag`.
It is empty if the store has no etags.  The size is in bytes.  The time of writing is in microseconds since 1970."""


@dataclass(frozen=True)
class SkippedName:
    """A name that a listing leaves out.

    Args:
        path: the path of a file or a directory, relative to the location; escaped if it cannot be text.
        reason: the reason and the next step, in one line.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class ListingPage:
    """Objects of one page, or of several pages that were listed side by side.

    Args:
        table: a row per object, see `LISTED`; each of its batches is in the order of names.
        requests: number of LIST requests that the page cost.
        skipped: names that are left out.
        is_last: True if no page follows; False if that is not known, and may take a request to learn.
        above: the root or table that the location is in, as words for a message; None if none was found.
    """

    table: pa.Table
    requests: int
    skipped: tuple[SkippedName, ...] = ()
    is_last: bool = False
    above: str | None = None

    @classmethod
    def of(
        cls,
        paths: Sequence[str],
        etags: Sequence[str],
        sizes: Sequence[int],
        last_modified: Sequence[datetime],
        requests: int,
    ) -> ListingPage:
        """A page of objects given by lists of equal length."""
        columns = [paths, etags, sizes, [microseconds_of(each) for each in last_modified]]
        return cls(pa.table(columns, schema=LISTED), requests)

    @classmethod
    def joined(cls, pages: Sequence[ListingPage], *, is_last: bool) -> ListingPage:
        """Pages that were listed side by side, as one."""
        return cls(
            pages[0].table if len(pages) == 1 else pa.concat_tables([page.table for page in pages]),
            sum(page.requests for page in pages),
            tuple(name for page in pages for name in page.skipped),
            is_last,
        )

    @property
    def paths(self) -> list[str]:
        return self._list("path")

    @property
    def etags(self) -> list[str]:
        return self._list("etag")

    @property
    def sizes(self) -> list[int]:
        return self._list("size")

    @property
    def last_modified(self) -> list[datetime]:
        return [time_of(each) for each in self._list("modified_us")]

    @property
    def is_ordered(self) -> bool:
        """Whether the names are in the order of their bytes, each once."""
        paths = self.table["path"].combine_chunks()
        return bool(pc.all(pc.less(paths[:-1], paths[1:])).as_py() is not False)

    def objects(self) -> Iterator[tuple[str, str, int, datetime]]:
        """Path, etag, size and time of each object."""
        return zip(self.paths, self.etags, self.sizes, self.last_modified, strict=True)

    def _list(self, column: str) -> list:  # type: ignore[type-arg]
        return self.table[column].to_pylist()  # type: ignore[no-any-return]
