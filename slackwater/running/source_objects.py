"""The objects of the sources, and the views that corrections cannot change."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from actors.files import FileVersion, PathKey
from actors.objects.object_store import ObjectStore
from actors.sources.source import SourceDefinition
from spark_bridge.engine.catalyst.epoch_timestamps import uses_epoch_timestamps
from spark_bridge.query.correctable import cannot_compute_again, cannot_follow, follows_files
from state.location import Location
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import declared_name

_LOOKED_FOR_AT_ONCE = 16


class SourceObjects:
    """See `CorrectableFiles`.

    Args:
        root: the place of the views.
    """

    def __init__(self, root: Location, sources: Sequence[SourceDefinition]) -> None:
        self._root = root
        self._sources = {source.name: source for source in sources}

    def find(self, paths: Sequence[PathKey]) -> list[FileVersion | None]:
        """The present version of each object, looked for side by side; None without one."""
        stores = {name: ObjectStore(self._sources[name].location) for name in {source for source, _ in paths}}

        def found(path: PathKey) -> FileVersion | None:
            return stores[path[0]].find(*path, exact_time=self._sources[path[0]].uses_times)

        with ThreadPoolExecutor(_LOOKED_FOR_AT_ONCE, thread_name_prefix="look") as threads:
            return list(threads.map(found, paths))

    def refusal(self, view: CatalogView, version: ViewVersion | None) -> str | None:
        """The reason why a view cannot be corrected, with the next step; None if it can."""
        if view.view_class == "append" and not follows_files(self._root, version):
            return cannot_follow(declared_name(view.name))
        if view.view_class == "aggregate" and uses_epoch_timestamps(view.identity):
            return cannot_compute_again(declared_name(view.name))
        return None
