"""Looks the names of listing pages up: which files are new, which changed, and which are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.files import ChangedFile, FileVersion
from actors.listing.epoch_writer import EpochWriter
from actors.listing.event_look_up import EventLookUp
from actors.listing.known_names import KnownNames
from actors.listing.listing_digests import ListingDigest
from actors.listing.listing_state import ListingTally
from actors.listing.seen_index import Sight
from actors.listing.settling_files import SettlingFiles
from actors.objects.listing_page import time_of
from state.errors import RunFailedError
from state.tables.fingerprint import path_fingerprints, version_fingerprints

_MISSING_AT_ONCE = 100_000


class PageLookUp:
    """Puts the new files of pages among the unsent ones, and tells which files changed since they were handed on.

    Args:
        source: the name of the source.
        names: the names of the source.
        looks: looks at single objects, where a page contradicts one.
        writer: the rows of the open epoch.
        tally: gets the number of files found.
        settling: files that a second listing must show; None if one listing is enough.
        removes, not_before_us: see `ListExecutor`.
    """

    def __init__(
        self,
        *,
        source: str,
        names: KnownNames,
        looks: EventLookUp,
        writer: EpochWriter,
        tally: ListingTally,
        settling: SettlingFiles | None,
        removes: bool,
        not_before_us: int | None,
    ) -> None:
        self._source, self._names, self._looks = source, names, looks
        self._writer, self._tally, self._settling = writer, tally, settling
        self._removes, self._not_before_us = removes, not_before_us

    def begin_listing(self) -> None:
        """A listing begins."""
        self._names.seen.begin_listing()
        self._names.digests.begin_listing()
        self._looks.begin_listing()

    def take(self, rows: pa.RecordBatch) -> list[ChangedFile]:
        """Takes objects of a page, see `LISTED`; returns those that changed since they were handed on.

        Raises:
            RunFailedError: two names have one fingerprint.
        """
        digests = self._names.digests.unknown(rows)
        return self._look_up(rows, digests) if digests else []

    def end_listing(self) -> None:
        """Notes the names that a complete listing did not show.

        If the listing skipped names, and the numbers say that one is missing, the next listing looks up every name.
        """
        seen, digests = self._names.seen, self._names.digests
        if digests.skipped:
            if not seen.shows_all(digests.skipped):
                digests.forget()
        else:
            for key, version in seen.take_missing(_MISSING_AT_ONCE).items():
                if self._looks.has_looked(key):
                    self._looks.look_again_at(key)
                else:
                    self._names.missing.add(key, version, self._writer.last_epoch)
        self._looks.end_listing()

    def _look_up(self, rows: pa.RecordBatch, digests: Sequence[ListingDigest]) -> list[ChangedFile]:
        looked_up = np.concatenate([np.arange(each.start, each.stop) for each in digests])
        if len(looked_up) < rows.num_rows:
            rows = rows.take(pa.array(looked_up))
        keys = path_fingerprints(self._source, rows["path"])
        versions = version_fingerprints(rows["etag"], rows["size"], rows["modified_us"])
        sights = self._names.seen.show(keys, versions)
        for path in self._names.missing.discard(keys):
            self._looks.look_again(path)
        if not self._removes:
            sights[sights == Sight.BACK] = Sight.SAME
        is_seen = is_known = sights == Sight.SAME
        if self._not_before_us is not None:
            is_known = is_seen | ((sights == Sight.NEW) & (rows["modified_us"].to_numpy() < self._not_before_us))
        self._note_known(digests, is_seen, is_known)
        unknown = np.flatnonzero(~is_known).tolist()
        changed = []
        for at, row in zip(unknown, rows.take(pa.array(unknown, pa.int64())).to_pylist(), strict=True):
            change = self._take(row, keys[at], versions[at], sights[at])
            if change is not None:
                changed.append(change)
        return changed

    def _note_known(
        self, digests: Sequence[ListingDigest], is_seen: npt.NDArray[np.bool_], is_known: npt.NDArray[np.bool_]
    ) -> None:
        """Keeps the digests of rows that are all known, for the next listing."""
        at = 0
        for digest in digests:
            end = at + digest.stop - digest.start
            if is_known[at:end].all():
                self._names.digests.put(digest, int(np.count_nonzero(is_seen[at:end])))
            at = end

    def _take(self, row: Mapping[str, Any], key: bytes, version: bytes, sight: int) -> ChangedFile | None:
        """Takes one object that is not known in this version; returns it if another version was handed on."""
        path = row["path"]
        if self._looks.has_looked(key):
            self._looks.look_again(path)
            return None
        if sight == Sight.TWICE:
            raise RunFailedError(
                f"source {self._source}: {path} was listed twice in two versions, or has the fingerprint of another "
                "name: rename it"
            )
        is_new = sight == Sight.NEW
        settling = None if sight == Sight.BACK else self._settling
        if settling is not None and settling.is_settling(path, version, is_new=is_new):
            return None
        file = FileVersion(self._source, path, version, row["etag"], row["size"], time_of(row["modified_us"]))
        self._tally.on_found()
        if is_new:
            self._names.unsent.add(file)
            return None
        (before,) = self._names.seen.lookup([key])
        assert before is not None, "its sight was not NEW"
        self._writer.mark_seen(path, version)
        return ChangedFile(before, file)
