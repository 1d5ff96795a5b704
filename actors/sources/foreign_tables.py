"""Tables and roots below a source: while the pattern accepts files of one, the source pauses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from actors.objects.listing_page import ListingPage
from state.places.table_signs import TableSign, sign_of, table_signs
from state.visible import visible


class ForeignTables:
    """Decides whether a source may continue to read.

    It pauses when its pattern accepts a file in the directory of a table or a root: such files are not data to read one
    by one.  A table in a directory that the pattern leaves out pauses nothing.  A pause ends with a complete listing in
    which the pattern accepts no such file.

    Names are checked page by page, so files that earlier pages of the first listing showed may have been handed on.

    Args:
        url: the URL of the source, for messages.

    Attributes:
        paused: the reason of the pause, with the next step; None while the source is read.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        # Directory → sign, of the last complete listing, and of the listing under way with the events since.
        self._last: dict[str, TableSign] = {}
        self._now: dict[str, TableSign] = {}
        self._above: str | None = None
        self._is_met = False
        self.paused: str | None = None

    def begin_listing(self) -> None:
        self._last, self._now, self._above, self._is_met = self._now, {}, None, False

    def take_page(self, page: ListingPage, accepted: Sequence[pa.RecordBatch]) -> None:
        """Takes a page: all of its names, and the rows that the pattern accepts."""
        self._above = page.above or self._above
        for chunk in page.table["path"].chunks:
            self._add(table_signs(chunk))
        if self._above is None and not self._now and not self._last:
            return
        for rows in accepted:
            self._meet(rows["path"])

    def take_names(self, names: Iterable[str]) -> None:
        """Takes names of events, which the pattern need not accept."""
        self._add(sign for name in names if (sign := sign_of(name)) is not None)

    def take_accepted(self, paths: Collection[str]) -> None:
        """Takes names of events that the pattern accepts."""
        self._meet(pa.array(paths, pa.string()))

    def end_listing(self) -> None:
        """A listing has ended.  The pause ends if the listing showed no reason for it."""
        self._last = {}
        if not self._is_met:
            self.paused = None

    def drop_listing(self) -> None:
        """A listing ended before its last page: its signs, and the earlier signs, count in the next listing."""
        self._now, self._last = self._last | self._now, {}

    def _add(self, signs: Iterable[TableSign]) -> None:
        for sign in signs:
            self._now.setdefault(sign.directory, sign)

    def _meet(self, paths: pa.StringArray) -> None:
        if not len(paths):
            return
        if self._above is not None:
            self._pause(self._above, "move the source to another place")
            return
        for directory, sign in (self._last | self._now).items():
            if not directory or pc.any(pc.starts_with(paths, f"{directory}/")).as_py():
                place = f"{self._url}/{directory}" if directory else self._url
                self._pause(
                    f"{visible(place)} is {sign.kind} ({visible(sign.path)})",
                    f"read {sign.instead}, or move it, give the source another URL, or a pattern that leaves the "
                    "directory out",
                )
                return

    def _pause(self, place: str, step: str) -> None:
        self._is_met = True
        self.paused = (
            f"{place}: its files are not read as data; {step}; the source continues after a listing without it"
        )
