"""Pages of the listings of a source, with the root or table that the source is in."""

from __future__ import annotations

from dataclasses import replace

from actors.objects.enclosing_table import requests_above
from actors.objects.listing_page import ListingPage
from actors.objects.object_store import ObjectStore
from actors.objects.page_reader import PageReader


class SourcePages:
    """Reads one listing after the other, as `PageReader`, and searches the directories above for tables.

    Links and mounts of a disk change, so a disk is searched with each listing.  In a bucket the search costs requests,
    see `enclosing_table`: a bucket is searched with the first listing, and again while a table is found.

    Args:
        store: the location of the source.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store, self._pages = store, PageReader(store)
        self._above: str | None = None
        self._must_look = True

    def begin(self) -> None:
        self._must_look |= self._store.location.is_local or self._above is not None
        self._pages.begin()

    def read(self, most: int) -> ListingPage | None:
        page = self._pages.read(most)
        if page is None:
            return None
        requests = page.requests
        if self._must_look:
            self._must_look = False
            found = self._store.enclosing_table()
            self._above = None if found is None else f"the source is in {found}"
            lists, _ = requests_above(self._store.location)
            requests += lists
        return replace(page, above=self._above, requests=requests)
