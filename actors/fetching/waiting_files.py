"""Files that are to be opened: as they come, or one after the other in an order."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping

from actors.fetching.file_progress import FileProgress
from actors.files import FileKey, place


class PendingFiles:
    """Files that are to be opened.

    Of a source with an order the first of all that wait is opened when the one before is finished; those of other
    sources are opened as they come.

    Args:
        orders: source → its order, of the sources that have one.
    """

    def __init__(self, orders: Mapping[str, str]) -> None:
        self._orders = orders
        self._unordered: deque[FileProgress] = deque()
        self._ordered: dict[str, list[FileProgress]] = {}
        self._reading: dict[str, FileKey] = {}

    def __bool__(self) -> bool:
        return bool(self._unordered) or any(self._ordered.values())

    def __iter__(self) -> Iterator[FileProgress]:
        for files in self._ordered.values():
            yield from files
        yield from self._unordered

    def add(self, progress: FileProgress, *, first: bool = False) -> None:
        """A file is to be opened; without an order behind the others, or before them."""
        order = self._orders.get(progress.file.source)
        if order is not None:
            files = self._ordered.setdefault(progress.file.source, [])
            insort(files, progress, key=lambda each: (not each.has_begun, *place(each.file, order)))
        elif first:
            self._unordered.appendleft(progress)
        else:
            self._unordered.append(progress)

    def pop(self, decided: Container[str], may_be_read: Callable[[FileProgress], bool] | None) -> FileProgress | None:
        """The next file to open, if there is one.

        Args:
            decided: the sources whose schema is decided; of others several files are opened, to see it.
            may_be_read: which files may be; None for all.
        """
        for source, files in self._ordered.items():
            if source not in self._reading or source not in decided:
                found = next((each for each in files if may_be_read is None or may_be_read(each)), None)
                if found is not None:
                    files.remove(found)
                    self._reading[source] = found.key
                    return found
        if may_be_read is None:
            return self._unordered.popleft() if self._unordered else None
        found = next(filter(may_be_read, self._unordered), None)
        if found is not None:
            self._unordered.remove(found)
        return found

    def end(self, progress: FileProgress) -> None:
        """A file is finished, or is read no more."""
        if self._reading.get(progress.file.source) == progress.key:
            del self._reading[progress.file.source]

    def remove(self, progress: FileProgress) -> None:
        """A file is not to be opened, if it was."""
        source = progress.file.source
        files = self._ordered.get(source, []) if source in self._orders else self._unordered
        if progress in files:
            files.remove(progress)

    def take_all(self) -> list[FileProgress]:
        """Everything that waits; nothing does from here on."""
        files = list(self)
        self._unordered.clear()
        self._ordered.clear()
        return files
