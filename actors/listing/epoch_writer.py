"""Rows that one list step writes in the open epoch, into the tables `seen`, `quarantine` and `list_state`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from actors.files import FileVersion
from actors.names.name_shards import Names
from actors.notifications.event_feed import PoisonMessage
from actors.notifications.event_watch import EventWatch
from actors.objects.listing_page import SkippedName
from state.errors import ProtocolError
from state.tables.delta import Delta, DeltaBuilder
from state.tables.fingerprint import path_fingerprint, path_fingerprints
from state.tables.keys import encode_key
from state.vnode import vnode_of


class EpochWriter:
    """Gathers the rows of one epoch after the other.

    Args:
        source: the name of the source.
        seen: the names, which get each one together with the table.
        events: the watch that learns of each name; None without a queue of events.

    Attributes:
        epoch: the open epoch; None before the first barrier.
        last_epoch: the epoch in which a name was written last; 0 if none was.
        activity: number of things so far that need a commit.
        needs_state: whether this epoch needs a row in `list_state`.
    """

    def __init__(self, source: str, url: str, seen: Names, events: EventWatch | None) -> None:
        self._source, self._url, self._seen, self._events = source, url, seen, events
        self._delta = DeltaBuilder()
        self.epoch: int | None = None
        self.last_epoch = self.activity = 0
        self.needs_state = False

    @property
    def open_epoch(self) -> int:
        """The open epoch, once there is one."""
        if self.epoch is None:
            raise ProtocolError(f"source {self._source}: a name was handed on before the first barrier")
        return self.epoch

    def mark_seen(self, files: Sequence[FileVersion]) -> None:
        """Notes that these versions are handed on in the open epoch."""
        if not files:
            return
        paths, versions = [each.path for each in files], [each.version for each in files]
        keys = path_fingerprints(self._source, pa.array(paths, pa.string()))
        for key, version in zip(keys, versions, strict=True):
            self._seen.put(key, version)
        source = pa.repeat(self._source, len(files))
        self._delta.put_many(
            "seen", keys, [vnode_of(path) for path in paths], {"source": source, "path": paths, "version": versions}
        )
        self.needs_state = True
        self.last_epoch = self.open_epoch
        if self._events is not None:
            for path in paths:
                self._events.settle(path, self.open_epoch)
                self._events.on_handed_on(path)

    def quarantine(self, message: PoisonMessage) -> None:
        """Keeps a poison message among the bad records."""
        message.quarantine(self._delta, self._source)
        self.activity += 1

    def quarantine_name(self, name: SkippedName) -> None:
        """Keeps a skipped name among the bad records: without a row, like a poison message."""
        url = f"{self._url}/{name.path}"
        version = path_fingerprint(self._source, url)[:8]
        self._delta.put(
            "quarantine",
            encode_key(self._source, url, version, 0),
            vnode_of(url),
            source=self._source,
            path=url,
            version=version,
            row=None,
            raw=b"",
            reason=name.reason,
        )
        self.activity += 1

    def require_commit(self) -> None:
        """Makes the open epoch one that is committed, even if nothing is handed on in it."""
        self.needs_state = True
        self.activity += 1

    def seal(self, state: Mapping[str, object] | None) -> Delta:
        """Ends the open epoch.

        Args:
            state: the source's row in `list_state`; None if it does not change.

        Returns:
            All rows of the epoch.
        """
        if state is not None:
            self._delta.put("list_state", encode_key(self._source), 0, source=self._source, **state)
        self.needs_state = False
        return self._delta.build()
