"""Files that a user names: a whole URL, an absolute path, or a glob over the paths below a source."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow.compute as pc

from actors.files import PathKey
from actors.sources.path_filter import PathFilter
from state.location import Location
from state.store.store import StateStore
from state.tables.keys import encode_key
from state.tables.row_selection import after_prefix

_SPECIAL = re.compile(r"[*?\[{\\]")


class NamedFiles:
    """A name of files, as users give it.

    Args:
        file: a whole URL, an absolute path, or a glob over the paths below a source, as in the pattern of a source; an
            exact path matches its file, also if it has characters of a glob.
        urls: source → its URL.
    """

    def __init__(self, file: str, urls: Mapping[str, str]) -> None:
        self._file, self._urls = file, urls
        self._url = Location(file).url if "://" in file or file.startswith("/") else None
        self._glob = PathFilter(file, hides_directories=False) if self._url is None else None

    def has(self, source: str, path: str) -> bool:
        if self._glob is None:
            return f"{self._urls.get(source)}/{path}" == self._url
        return path == self._file or self._glob.accepts(path)

    def listed(self, store: StateStore) -> set[PathKey]:
        """The objects of this name in the ledger and the queue.

        Only rows with a path that begins as the name does, before its first character of a glob, are read.

        Args:
            store: a handle on the store.
        """
        found: set[PathKey] = set()
        for source in self._urls:
            begin = self._begin(source)
            if begin is None:
                continue
            for table in ("ledger", "queue"):
                for rows in store.slices(table, start=begin, end=after_prefix(begin), fields=["path"]):
                    found |= {(source, path) for path in pc.unique(rows["path"]).to_pylist() if self.has(source, path)}
        return found

    def _begin(self, source: str) -> bytes | None:
        """The prefix of the keys of a source; None if none of its objects can have the name."""
        if self._url is None:
            path = _SPECIAL.split(self._file, maxsplit=1)[0]
        else:
            above = f"{self._urls[source]}/"
            if not self._url.startswith(above):
                return None
            path = self._url.removeprefix(above)
        # The last byte ends the path.
        return encode_key(source, path)[:-1]
