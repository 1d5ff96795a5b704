"""Files that are not open yet, in the order of their opening."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping

from actors.fetching.file_progress import FileProgress
from actors.files import FileKey, ReadingOrder, place


class PendingFiles:
    """Files to open, in order.

    A source with an order opens one file at a time: the first of all that are pending, when the one before is finished.
    Files of other sources are opened as they come, side by side.

    Files can be set aside: they stay here, and `pop` and iteration pass them over.

    Args:
        orders: source → its order, of the sources that have one.
    """

    def __init__(self, orders: Mapping[str, ReadingOrder]) -> None:
        self._orders = orders
        self._unordered: deque[FileProgress] = deque()
        self._ordered: dict[str, list[FileProgress]] = {}
        self._reading: dict[str, FileKey] = {}
        self._aside: list[FileProgress] = []
        self._stays: Callable[[FileProgress], bool] | None = None

    def __bool__(self) -> bool:
        return bool(self._unordered) or any(self._ordered.values())

    def __iter__(self) -> Iterator[FileProgress]:
        for files in self._ordered.values():
            yield from files
        yield from self._unordered

    def add(self, progress: FileProgress, *, first: bool = False) -> None:
        """Adds a file: at its place in the order of its source, or else behind (or, `first`, before) the others."""
        if self._stays is not None and not self._stays(progress):
            self._aside.append(progress)
            return
        order = self._orders.get(progress.file.source)
        if order is not None:
            files = self._ordered.setdefault(progress.file.source, [])
            insort(files, progress, key=lambda each: (not each.has_begun, *place(each.file, order)))
        elif first:
            self._unordered.appendleft(progress)
        else:
            self._unordered.append(progress)

    def pop(self, decided: Container[str], may_be_read: Callable[[FileProgress], bool] | None) -> FileProgress | None:
        """The next file to open; None if no file can be opened now.

        Args:
            decided: sources whose schema is decided; of others several files are opened, to infer it.
            may_be_read: whether a file may be opened; None if all may.
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
        """Lets the next file of an ordered source be opened, if this one was open."""
        if self._reading.get(progress.file.source) == progress.key:
            del self._reading[progress.file.source]

    def remove(self, progress: FileProgress) -> None:
        """Removes a file, if it is here."""
        source = progress.file.source
        files = self._ordered.get(source, []) if source in self._orders else self._unordered
        for place_of in (files, self._aside):
            if progress in place_of:
                place_of.remove(progress)

    def set_aside(self, stays: Callable[[FileProgress], bool] | None) -> None:
        """Sets aside all files, present and to come, that do not stay; with None all are pending again."""
        self._stays = stays
        self.retain(lambda progress: True)

    def retain(self, belongs: Callable[[FileProgress], bool]) -> None:
        """Removes the files that do not belong here any more, from among those set aside too."""
        files = [*self, *self._aside]
        self._unordered.clear()
        self._ordered.clear()
        self._aside = []
        for each in files:
            if belongs(each):
                self.add(each)
