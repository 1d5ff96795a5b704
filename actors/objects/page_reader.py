"""Reads a listing, with several requests side by side once it is known where it can be divided.

An object store lists in the order of names, and from any name on.  So a listing that took many pages is divided the
next time: at the names with which pages had ended, into ranges of about as many pages each.  Every range is listed
up to the name with which the next one begins: the names are exactly those of one listing, and it costs at most one
request more for each range.  Where the ranges do not fit together all is listed once more as a whole, and a store that
is seen to list in another order is never divided again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pyarrow.compute as pc

from actors.objects.listing_page import ListingPage
from actors.objects.object_store import ObjectStore

SIDE_BY_SIDE = 8
_PAGES_PER_RANGE = 2


@dataclass(eq=False)
class _Range:
    """A part of the listing: the names after `start` up to `end`; None for the beginning and the end of all.

    Args:
        first: the first name, if there is any.
        lasts: the last names of its pages.
        beyond: the name behind `end` that its last page has shown.
    """

    pages: Iterator[ListingPage]
    start: str | None = None
    end: str | None = None
    first: str | None = None
    lasts: list[str] = field(default_factory=list)
    beyond: str | None = None


class PageReader:
    """The pages of one listing after the other.  One caller at a time.

    Args:
        store: what is listed.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="list")
        self._borders: list[str] = []
        self._ranges: list[_Range] = []
        self._open: deque[_Range] = deque()
        self._is_ordered = store.lists_from_names

    def begin(self) -> None:
        """Begins a new listing."""
        if not self._open:
            self._borders = self._divided() if self._is_ordered else []
        starts, ends = [None, *self._borders], [*self._borders, None]
        self._ranges = [
            _Range(self._store.list_pages(after=start), start, end) for start, end in zip(starts, ends, strict=True)
        ]
        self._open = deque(self._ranges)

    def read(self, most: int) -> ListingPage | None:
        """The next pages, up to `most` of them, as one page; None at the end of the listing, which is not asked for.

        Raises:
            BucketNotFoundError, AccessDeniedError, StorageUnavailableError, SettingsError: see `ObjectStore.check`.
        """
        ranges = [self._open.popleft() for _ in range(min(most, len(self._open)))]
        if not ranges:
            return None
        if len(ranges) == 1:
            pages = [next(ranges[0].pages, None)]
        else:
            pages = list(self._threads.map(lambda each: next(each.pages, None), ranges))
        taken = [self._take(each, page) for each, page in zip(ranges, pages, strict=True) if page is not None]
        if not self._open and not self._is_seamless():
            self._list_as_a_whole()
        return ListingPage.joined(taken, is_last=not self._open) if taken else self.read(most)

    def _take(self, part: _Range, page: ListingPage) -> ListingPage:
        """The page's names that belong to its range, which goes on unless it has reached its end."""
        if part not in self._ranges:
            return page  # another one has shown that the ranges are none
        names = page.table["path"]
        if self._is_ordered and len(names) and not self._is_in_order(part, page):
            self._is_ordered = False
            if len(self._ranges) > 1:
                self._list_as_a_whole()
                return page
        if len(names):
            part.first = part.first or names[0].as_py()
            part.lasts.append(names[-1].as_py())
            if part.end is not None and part.lasts[-1] >= part.end:
                within = pc.sum(pc.less_equal(names, part.end)).as_py()
                part.beyond = names[within].as_py() if within < len(names) else None
                part.lasts[-1] = part.end
                return replace(page, table=page.table.slice(0, within))
        if not page.is_last:
            self._open.append(part)
        return page

    def _is_in_order(self, part: _Range, page: ListingPage) -> bool:
        last = part.lasts[-1] if part.lasts else part.start
        return page.is_ordered and (last is None or last < page.table["path"][0].as_py())

    def _is_seamless(self) -> bool:
        """Whether what came behind the end of each range is what the next one began with."""
        following: str | None = None
        for part in reversed(self._ranges):
            if part.beyond is not None and part.beyond != following:
                return False
            following = part.first or following
        return True

    def _list_as_a_whole(self) -> None:
        """The ranges may have missed a name, which stands elsewhere or has just come: once more, without them."""
        self._ranges = [_Range(self._store.list_pages())]
        self._open = deque(self._ranges)

    def _divided(self) -> list[str]:
        """Where the last listing can be divided: between ranges of as many pages each."""
        lasts = [last for each in self._ranges for last in each.lasts]
        ranges = min(SIDE_BY_SIDE, len(lasts) // _PAGES_PER_RANGE)
        return [lasts[number * len(lasts) // ranges - 1] for number in range(1, ranges)]
