"""The list step of one source as a Ray actor."""

from __future__ import annotations

from collections.abc import Sequence

from actors.hosting.event_source import EventSource
from actors.hosting.lazy_root import lazy_root
from actors.hosting.ray_runtime import RayRuntime
from actors.hosting.recorded_deletions import RecordedDeletions
from actors.objects.object_store import ObjectStore
from actors.objects.page_reader import PageReader
from actors.objects.source_pages import SourcePages
from actors.shells.actor_shell import Coordinating
from actors.shells.list_shell import ListShell, ListStart
from actors.shells.runtime import Actor
from actors.sources.discovery import Notifications
from state.location import Location


class ListActor(ListShell):
    """See `ListShell`."""

    def __init__(
        self, *, name: str, edges: Sequence[str], coordinator: Actor[Coordinating], root: Location, start: ListStart
    ) -> None:
        runtime, source = RayRuntime(name), start.source
        store = ObjectStore(source.location)
        events = None
        if isinstance(source.discovery, Notifications):
            events = EventSource(source, source.discovery, store, root)
        super().__init__(
            name=name,
            edges=edges,
            coordinator=coordinator,
            runtime=runtime,
            open_root=lazy_root(root, runtime.clock),
            start=start,
            # The rows of a static table belong into the root.
            pages=PageReader(store) if source.table == "frame" else SourcePages(store),
            events=events,
            must_settle=source.location.is_local,
            deletions=RecordedDeletions(root, source.name, is_growing=source.deletes),
        )
