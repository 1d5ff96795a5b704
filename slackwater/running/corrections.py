"""Corrections of files in a run: `forget` deletes their rows from the views, `reingest` reads them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa

from actors.files import FileVersion, ForgottenFile, PathKey
from actors.protocol.barrier import Forget, Mutation, Reread
from actors.sources.source import SourceDefinition
from slackwater.commands.named_files import NamedFiles
from slackwater.extensions.run_views import RunViews
from slackwater.running.delivered_versions import delivered_versions
from slackwater.running.requests import RunRequests
from slackwater.tables.static_table import FILE as TABLE_FILE
from slackwater.tables.static_table import StaticTable
from state.errors import CommandRefusedError, NotFoundError
from state.location import Location
from state.store.root import Root
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import declared_name

_AT_ONCE = 10_000
"""Files in one mutation: a barrier carries them to every actor."""
_SHOWN = 3
_File = TypeVar("_File")


class CorrectableFiles(Protocol):
    """The objects of the sources, and the catalog of views; see `slackwater.running.source_objects`."""

    def find(self, paths: Sequence[PathKey]) -> list[FileVersion | None]:
        """The present version of each object; None without one."""
        ...

    def refusal(self, view: CatalogView, version: ViewVersion | None) -> str | None:
        """The reason why a view cannot be corrected, with the next step; None if it can."""
        ...


class Corrections:
    """Carries out `forget` and `reingest` in a run.

    Args:
        root: the root with the ledger.
        files: the objects, and the views that cannot change.
        needs: see `RunViews`; a file that is read again is protected before that is accepted.
    """

    def __init__(
        self,
        root: Root,
        sources: Sequence[SourceDefinition],
        requests: RunRequests,
        files: CorrectableFiles,
        needs: RunViews,
    ) -> None:
        self._root, self._requests, self._files, self._needs = root, requests, files, needs
        self._sources = {source.name: source for source in sources}

    def forget(self, file: str, source: str | None = None) -> int:
        """Deletes the rows of files, see `Run.forget`."""
        files = [ForgottenFile(*path) for path in self._named(file, source)]
        self._carry_out(Forget(part) for part in _parts(files))
        return len(files)

    def reingest(self, file: str, source: str | None = None) -> int:
        """Reads files again, see `Run.reingest`."""
        with self._needs.excluding():
            files = self._versions_of(self._named(file, source))
            self._carry_out(Reread(part) for part in _parts(files))
        return len(files)

    def replace_table(self, name: str, rows: pa.Table) -> None:
        """Replaces the rows of a static table, see `Run.replace_table`."""
        location = self._location_of_table(name)
        self._require_correctable(self._root.open(read_only=True), {name})
        StaticTable(location, name).replace(rows)
        self.read_table(name)

    def read_table(self, name: str) -> None:
        """Reads the stored rows of a static table again."""
        try:
            self.reingest(f"{self._location_of_table(name).url}/{TABLE_FILE}", name)
        except NotFoundError:
            # No listing has found the table yet: the first one finds these rows.
            pass

    def _location_of_table(self, name: str) -> Location:
        tables = {each: source.location for each, source in self._sources.items() if source.table == "frame"}
        if name not in tables:
            raise CommandRefusedError(
                f"the running pipeline has no static table {name!r}; its tables are: {', '.join(tables) or 'none'}"
            )
        return tables[name]

    def _carry_out(self, mutations: Iterable[Mutation]) -> None:
        for mutation in mutations:
            # Repeated if an attempt ends before its report; forgetting a file twice has the effect of once.
            while not self._requests.carry_out(self._requests.running_attempt(), mutation):
                pass

    def _named(self, file: str, source: str | None) -> list[PathKey]:
        """The objects of this name in the ledger or the queue, whose rows can be corrected.

        Raises:
            NotFoundError: there is no such object or source.
            CommandRefusedError: their source is not materialized, or a view over it cannot be corrected.
        """
        if source is not None and source not in self._sources:
            raise NotFoundError(
                f"the running pipeline has no source {source!r}; its sources are: {', '.join(self._sources)}"
            )
        store = self._root.open(read_only=True)
        urls = {name: each.location.url for name, each in self._sources.items() if source in (None, name)}
        found = NamedFiles(file, urls).listed(store)
        if not found:
            if not any(self._sources[name].materialize for name in urls):
                self._require_correctable(store, urls)
            raise NotFoundError(
                f"no file {file} was listed{f' in source {source}' if source else ''}; `files` shows all listed files"
            )
        self._require_correctable(store, {name for name, _ in found})
        return sorted(found)

    def _require_correctable(self, store: StateStore, sources: Iterable[str]) -> None:
        for name in sorted(sources):
            if not self._sources[name].materialize:
                raise CommandRefusedError(
                    f"source {name} is not materialized: its views can add rows, but not remove them; to correct "
                    "files, declare a source of another name with materialize=True"
                )
            for view in Catalog.of(store.scan("catalog")).views.values():
                if name in view.sources and view.stopped_epoch is None and not view.internal_views:
                    self._require_following(store, view)

    def _require_following(self, store: StateStore, view: CatalogView) -> None:
        apart = [each for each in view.sources if each not in self._sources or not self._sources[each].materialize]
        if view.view_class != "full" and apart:
            raise CommandRefusedError(
                f"view {declared_name(view.name)!r} cannot be corrected: it also reads {', '.join(apart)}, whose rows "
                "are not stored; declare all of its sources with materialize=True"
            )
        refusal = self._files.refusal(view, store.head.views.get(view.name))
        if refusal is not None:
            raise CommandRefusedError(refusal)

    def _versions_of(self, paths: Sequence[PathKey]) -> list[FileVersion]:
        """The present versions of these objects.

        Raises:
            NotFoundError: an object does not exist any more.
        """
        found = self._files.find(paths)
        gone = [path for (_, path), version in zip(paths, found, strict=True) if version is None]
        if gone:
            more = f", and {len(gone) - _SHOWN:,} more" if len(gone) > _SHOWN else ""
            raise NotFoundError(
                f"{', '.join(gone[:_SHOWN])}{more}: deleted, so nothing is read again; restore the file, exclude it, "
                "or forget it"
            )
        versions = [version for version in found if version is not None]
        return delivered_versions(self._root.open(read_only=True), versions)


def _parts(files: Sequence[_File]) -> Iterator[tuple[_File, ...]]:
    for start in range(0, len(files), _AT_ONCE):
        yield tuple(files[start : start + _AT_ONCE])
