"""Files that were found and are not handed on yet: they wait for budget, for a schema, or for the end of a listing."""

from __future__ import annotations

from heapq import nsmallest
from itertools import islice

from actors.files import FileVersion, ReadingOrder, place
from actors.protocol.messages import NewFiles
from actors.sources.source_schema import SAMPLE_FILES


class UnsentFiles:
    """Each path once, in its latest version.

    Args:
        order: the order in which they are handed on, see `SourceDefinition`; None for the order of their discovery.
        schema_known: False until the first files have shown the schema; until then they go ahead in small samples.
        sampled: number of files that have gone ahead so far.

    Attributes:
        budget: number of files that may still be handed on in this epoch.
    """

    def __init__(self, order: ReadingOrder | None, *, schema_known: bool, sampled: int) -> None:
        self._order, self._schema_known, self._sampled = order, schema_known, sampled
        self._awaits_schema = bool(sampled) and not schema_known
        self._files: dict[str, FileVersion] = {}
        self.budget = 0

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, path: str) -> bool:
        return path in self._files

    @property
    def may_grow(self) -> bool:
        """Whether a listing continues while files are unsent: it must end before they can be put into an order."""
        return self._order is not None

    def add(self, file: FileVersion) -> None:
        """A file was found."""
        self._files[file.path] = file

    def clear(self) -> None:
        """Forgets the files: a later listing finds them again."""
        self._files.clear()

    def on_schema(self, found: bool) -> None:
        """The sample has shown the schema, or none of its files could be read."""
        self._schema_known = self._schema_known or found
        self._awaits_schema = False

    def take(self, *, is_listing: bool) -> NewFiles | None:
        """Takes the files that may be handed on now; None if none may."""
        allowed = min(len(self._files), self.budget if self._schema_known else min(SAMPLE_FILES, self.budget))
        if allowed <= 0 or self._awaits_schema or (is_listing and self.may_grow):
            return None
        files = self._next(allowed)
        for each in files:
            del self._files[each.path]
        self.budget -= allowed
        self._awaits_schema = not self._schema_known
        if self._schema_known:
            return NewFiles(files)
        self._sampled += allowed
        return NewFiles(files, self._sampled)

    def _next(self, count: int) -> tuple[FileVersion, ...]:
        order = self._order
        if order is None:
            return tuple(islice(self._files.values(), count))
        return tuple(nsmallest(count, self._files.values(), key=lambda each: place(each, order)))
