"""Reader of listings that asks for several pages side by side, in ranges known from the listing before.

An object store lists in the order of names, and can begin behind any name.  So a listing of many pages is divided the
next time: at last names of pages, into ranges of about as many pages each.  Every range is listed up to the first name
of the next one: together they show exactly the names of one listing, for at most one request more per range.  If the
ranges do not fit together, everything is listed once more as a whole.  A store that turns out to list in another order
is never divided again.
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
    """A part of the listing.

    Args:
        start: the last name before it; None for the beginning of the listing.
        end: its last possible name; None for the end of the listing.
        first: its first name; None before it has one.
        lasts: the last names of its pages.
        beyond: the first name behind `end` on its last page; None if that has none.
    """

    pages: Iterator[ListingPage]
    start: str | None = None
    end: str | None = None
    first: str | None = None
    lasts: list[str] = field(default_factory=list)
    beyond: str | None = None


class PageReader:
    """Reads one listing after the other.  One caller at a time.

    Args:
        store: the location that is listed.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="list")
        self._borders: list[str] = []
        self._ranges: list[_Range] = []
        self._open: deque[_Range] = deque()
        self._is_ordered = store.lists_from_names

    def begin(self) -> None:
        if not self._open:
            self._borders = self._divided() if self._is_ordered else []
        starts, ends = [None, *self._borders], [*self._borders, None]
        self._ranges = [
            _Range(self._store.list_pages(after=start), start, end) for start, end in zip(starts, ends, strict=True)
        ]
        self._open = deque(self._ranges)

    def read(self, most: int) -> ListingPage | None:
        """The next pages, up to `most`, as one page; None at the end of the listing, which takes no request.

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
        """The names of a page that belong to its range; the range stays open until its end is reached."""
        if part not in self._ranges:
            return page  # another page has ended the division into ranges
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
        """Whether each name shown behind the end of a range is the first name of the next range."""
        following: str | None = None
        for part in reversed(self._ranges):
            if part.beyond is not None and part.beyond != following:
                return False
            following = part.first or following
        return True

    def _list_as_a_whole(self) -> None:
        """Lists once more without ranges: they may have missed a name that is out of order or has just come."""
        self._ranges = [_Range(self._store.list_pages())]
        self._open = deque(self._ranges)

    def _divided(self) -> list[str]:
        """The names at which the last listing can be divided into ranges of as many pages each."""
        lasts = [last for each in self._ranges for last in each.lasts]
        ranges = min(SIDE_BY_SIDE, len(lasts) // _PAGES_PER_RANGE)
        return [lasts[number * len(lasts) // ranges - 1] for number in range(1, ranges)]
