"""The fetch step of one share of the vnodes as a Ray actor."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from actors.hosting.lazy_root import lazy_root
from actors.hosting.ray_blocks import RayBlocks
from actors.hosting.ray_runtime import RayRuntime
from actors.objects.range_cache import RangeCache
from actors.reading.source_reader import SourceReader
from actors.settings import FetchSettings
from actors.shells.actor_shell import Coordinating
from actors.shells.fetch_shell import READ, READ_SMALL, STAGE, FetchShell, FetchStart
from actors.shells.runtime import Actor
from state.location import Location

_STAGED_AT_ONCE = 2


class FetchActor(FetchShell):
    """See `FetchShell`."""

    def __init__(
        self, *, name: str, edges: Sequence[str], coordinator: Actor[Coordinating], root: Location, start: FetchStart
    ) -> None:
        settings = start.settings
        runtime = RayRuntime(name, {READ: settings.concurrency, READ_SMALL: 1, STAGE: _STAGED_AT_ONCE})
        cache = _cache(settings, start.num_fetchers, root, name)
        super().__init__(
            name=name,
            edges=edges,
            coordinator=coordinator,
            runtime=runtime,
            open_root=lazy_root(root, runtime.clock),
            start=start,
            files={
                source.name: SourceReader(source, start.schemas.get(source.name), settings, cache, runtime.clock)
                for source in start.sources
            },
            blocks=RayBlocks(name, root, start.stored),
            cache=cache,
        )


def _cache(settings: FetchSettings, num_fetchers: int, root: Location, name: str) -> RangeCache | None:
    """This actor's part of the cache on this machine, if the settings name one."""
    if settings.cache is None:
        return None
    place = blake2b(str(root).encode(), digest_size=8).hexdigest()
    return RangeCache(Path(settings.cache.directory) / place / name, settings.cache.max_bytes // num_fetchers)
