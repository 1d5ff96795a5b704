"""Looks at single objects: those of events, and those where a page and a look contradict each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from actors.files import ChangedFile, FileVersion, microseconds_of
from actors.listing.epoch_writer import EpochWriter
from actors.listing.known_names import KnownNames
from actors.names.questions import Asking, FindNames, KnownName
from actors.notifications.event_watch import EventWatch
from state.tables.fingerprint import next_version, path_fingerprint, path_fingerprints


class EventLookUp:
    """Takes the result of a look as `PageLookUp` takes a page.

    Attributes:
        is_doubtful: whether this listing has passed a name over, and no further look decides about it.

    Args:
        source: the name of the source.
        events: the watch that has objects looked at; None without a queue of events: then nothing is looked at.
        names: the names of the source.
        writer: the rows of the open epoch.
        removes, not_before_us: see `ListExecutor`.
    """

    def __init__(
        self,
        *,
        source: str,
        events: EventWatch | None,
        names: KnownNames,
        writer: EpochWriter,
        removes: bool,
        not_before_us: int | None,
    ) -> None:
        self._source, self._events, self._names, self._writer = source, events, names, writer
        self._removes, self._not_before_us = removes, not_before_us
        self._is_listing = self.is_doubtful = False
        self._looked: dict[bytes, str] = {}

    def begin_listing(self) -> None:
        """A listing begins: its pages may show the state before the looks that end from now on."""
        self._is_listing, self.is_doubtful = True, False

    def end_listing(self) -> None:
        """All pages of the listing are taken."""
        self._is_listing = False
        self._looked.clear()

    def on_reread(self, path: str) -> None:
        """A user has an object read again, and so has looked at it: this listing may show another version."""
        if self._is_listing:
            self._looked[path_fingerprint(self._source, path)] = path

    def has_looked(self, key: bytes) -> bool:
        """Whether the name with this fingerprint was looked at since the listing began."""
        return key in self._looked

    def look_again(self, path: str) -> None:
        """Has a path looked at, because a page or the ledger contradicts an earlier look or version."""
        if self._events is not None:
            self._events.look_at([path])

    def pass_over(self, key: bytes) -> None:
        """Leaves a name for which `has_looked` holds to another look, or without events to the next listing."""
        self.is_doubtful = self.is_doubtful or self._events is None
        self.look_again(self._looked[key])

    def settle(self, path: str, epoch: int) -> None:
        """The messages about a path need no more than the commit of this epoch; see `MessageTracker.settle`."""
        if self._events is not None:
            self._events.settle(path, epoch)

    def on_looked(self, events: EventWatch, found: Mapping[str, FileVersion | None]) -> Asking[list[ChangedFile]]:
        """Takes the results of one `LookAt`.

        Args:
            events: the watch that asked for it.
            found: path → the version in the bucket; None where no object is.

        Returns:
            Files that changed since they were handed on.
        """
        doubtful = events.on_looked()
        looked = [path for path in found if path not in doubtful]
        keys = path_fingerprints(self._source, pa.array(looked, pa.string()))
        if self._is_listing:
            self._looked.update(zip(keys, looked, strict=True))
        changed = []
        known = yield from FindNames(keys).asked()
        for path, key, name in zip(looked, keys, known, strict=True):
            file = found[path]
            if file is None:
                self._take_missing(path, key, name)
            elif (change := self._take_file(path, key, name, file)) is not None:
                changed.append(change)
        self._writer.mark_seen([each.now for each in changed])
        return changed

    def _take_missing(self, path: str, key: bytes, known: KnownName) -> None:
        """Takes the absence of an object."""
        if known.version is not None:
            self._names.seen.set_missing([key])
            is_deleted = known.is_deleted and not known.is_unread
            self._names.missing.add(key, known.version, self._writer.last_epoch, path, is_deleted=is_deleted)
        elif path not in self._names.unsent:
            # Another process may have taken the root over and know the path; only the commit of this epoch tells.
            self.settle(path, self._writer.open_epoch)
            self._writer.require_commit()

    def _take_file(self, path: str, key: bytes, known: KnownName, file: FileVersion) -> ChangedFile | None:
        """Takes an object; returns it if it changed since it was handed on."""
        unsent, before = self._names.unsent, known.version
        self._names.missing.discard([key])
        self._names.seen.take_back(key)
        if before is None:
            limit = self._not_before_us
            if path in unsent or limit is None or microseconds_of(file.last_modified) >= limit:
                unsent.add(file)
            else:
                self.settle(path, 0)
            return None
        is_back = known.is_deleted and self._removes
        version: bytes | None = file.version
        if not is_back:
            version = next_version(
                before, file.version, file.last_modified, is_deleted=known.is_deleted, deleted=known.deleted_delivery
            )
        if known.deleted_delivery is not None:
            self._names.seen.set_deleted_by_run([key], [before], [known.deleted_delivery])
        if version is None:
            self.settle(path, self._writer.last_epoch)
            return None
        # A later listing may show the earlier version again, which the digests of the last listing would skip.
        self._names.digests.forget()
        return ChangedFile(before, replace(file, version=version))
