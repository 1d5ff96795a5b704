"""Look-up of the names of listing pages: new, changed and missing files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.files import ChangedFile, FileVersion, time_of
from actors.listing.epoch_writer import EpochWriter
from actors.listing.event_look_up import EventLookUp
from actors.listing.known_names import KnownNames
from actors.listing.listing_digests import ListingDigest
from actors.listing.listing_state import ListingTally
from actors.listing.removal_guard import RemovalGuard
from actors.listing.settling_files import SettlingFiles
from actors.names.questions import Asking, CountPresent, CountUnshown, KnownName, ShowNames, TakeMissing
from actors.names.seen_index import Sight
from state.errors import RunFailedError
from state.tables.fingerprint import next_version, path_fingerprints, version_fingerprints

_MISSING_AT_ONCE = 100_000


class PageLookUp:
    """Puts the new files of pages among the unsent ones, and tells which files changed since they were handed on.

    Args:
        source: the name of the source.
        names: the names of the source.
        guard: decides whether missing files may leave the views.
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
        guard: RemovalGuard,
        looks: EventLookUp,
        writer: EpochWriter,
        tally: ListingTally,
        settling: SettlingFiles | None,
        removes: bool,
        not_before_us: int | None,
    ) -> None:
        self._source, self._names, self._guard, self._looks = source, names, guard, looks
        self._writer, self._tally, self._settling = writer, tally, settling
        self._removes, self._not_before_us = removes, not_before_us

    def begin_listing(self) -> None:
        """A listing begins."""
        self._names.seen.begin_listing()
        self._names.digests.begin_listing()
        self._looks.begin_listing()

    def take(self, rows: pa.RecordBatch) -> Asking[list[ChangedFile]]:
        """Takes objects of a page, see `LISTED`; returns those that changed since they were handed on.

        Raises:
            RunFailedError: two names have one fingerprint.
        """
        digests = self._names.digests.unknown(rows)
        return (yield from self._look_up(rows, digests)) if digests else []

    def end_listing(self, now_s: float) -> Asking[None]:
        """Notes the names that a complete listing did not show, and confirms those that the one before lacked.

        If the listing skipped names, and the numbers say that one is missing, the next listing looks up every name.
        While removals are paused, no further name is noted: the number is enough.

        Args:
            now_s: time of the monotonic clock.
        """
        digests, missing = self._names.digests, self._names.missing
        missing.confirm()
        unshown = yield from CountUnshown().asked()
        missing.uncounted = max(0, unshown - digests.skipped)
        if missing.is_confirmed:
            present = yield from CountPresent().asked()
            self._guard.decide(missing.count, present, now_s)
        else:
            self._guard.go_on(missing.count)
        if digests.skipped:
            if missing.uncounted and not self._guard.paused:
                digests.forget()
        elif not self._guard.paused:
            taken = yield from TakeMissing(_MISSING_AT_ONCE).asked()
            missing.uncounted -= len(taken)
            for key, version in taken.items():
                if self._looks.has_looked(key):
                    self._looks.pass_over(key)
                else:
                    missing.suspect(key, version, self._writer.last_epoch)
        self._looks.end_listing()

    def _look_up(self, rows: pa.RecordBatch, digests: Sequence[ListingDigest]) -> Asking[list[ChangedFile]]:
        lengths = [each.stop - each.start for each in digests]
        if sum(lengths) < rows.num_rows:
            rows = rows.take(pa.array(np.concatenate([np.arange(each.start, each.stop) for each in digests])))
        keys = path_fingerprints(self._source, rows["path"])
        versions = version_fingerprints(rows["etag"], rows["size"], rows["modified_us"])
        shown = yield from ShowNames(keys, versions).asked()
        sights = shown.sights
        for path in self._names.missing.discard(keys):
            self._looks.look_again(path)
        for at, name in shown.before.items():
            sights[at], versions[at] = self._resolved(rows, at, keys[at], versions[at], Sight(sights[at]), name)
        is_seen = is_known = sights == Sight.SAME
        if self._not_before_us is not None:
            is_known = is_seen | ((sights == Sight.NEW) & (rows["modified_us"].to_numpy() < self._not_before_us))
        self._note_known(digests, np.cumsum([0, *lengths[:-1]]), is_seen, is_known)
        unknown = np.flatnonzero(~is_known).tolist()
        if not unknown:
            return []
        changed = []
        files = self._files(rows.take(pa.array(unknown, pa.int64())), [versions[at] for at in unknown])
        for at, sight, file in zip(unknown, sights[unknown].tolist(), files, strict=True):
            known = shown.before.get(at)
            change = self._take(file, keys[at], sight, None if known is None else known.version)
            if change is not None:
                changed.append(change)
        self._writer.mark_seen([each.now for each in changed])
        return changed

    def _resolved(
        self, rows: pa.RecordBatch, at: int, key: bytes, by_content: bytes, sight: Sight, name: KnownName
    ) -> tuple[Sight, bytes]:
        """The sight of an object under a known name, and the version in which it is handed on."""
        assert name.version is not None, "its sight was not NEW"
        if name.is_deleted and self._removes:
            is_same = name.version == by_content
            return (Sight.BACK, name.version) if is_same else (sight, by_content)
        if name.deleted_delivery is not None:
            # `show` has removed the mark, which has to last until another version is handed on.
            self._names.seen.set_deleted_by_run([key], [name.version], [name.deleted_delivery])
        modified = time_of(rows["modified_us"][at].as_py())
        version = next_version(
            name.version, by_content, modified, is_deleted=name.is_deleted, deleted=name.deleted_delivery
        )
        return (Sight.SAME, name.version) if version is None else (sight, version)

    def _files(self, rows: pa.RecordBatch, versions: Sequence[bytes]) -> Iterator[FileVersion]:
        """Yields the objects of some rows, see `LISTED`, in their versions."""
        paths, etags, sizes, times = (rows[name].to_pylist() for name in ("path", "etag", "size", "modified_us"))
        return map(FileVersion, repeat(self._source), paths, versions, etags, sizes, map(time_of, times))

    def _note_known(
        self,
        digests: Sequence[ListingDigest],
        starts: npt.NDArray[np.int64],
        is_seen: npt.NDArray[np.bool_],
        is_known: npt.NDArray[np.bool_],
    ) -> None:
        """Keeps the digests of rows that are all known, for the next listing; each begins at one of the starts."""
        seen = np.add.reduceat(is_seen, starts, dtype=np.int64)
        all_known = np.logical_and.reduceat(is_known, starts)
        for digest, names, is_kept in zip(digests, seen.tolist(), all_known.tolist(), strict=True):
            if is_kept:
                self._names.digests.put(digest, names)

    def _take(self, file: FileVersion, key: bytes, sight: int, before: bytes | None) -> ChangedFile | None:
        """Takes one object that is not known in this version; returns it if another version was handed on."""
        if self._looks.has_looked(key):
            self._looks.pass_over(key)
            return None
        if sight == Sight.TWICE:
            raise RunFailedError(
                f"source {self._source}: {file.path} was listed twice in two versions, or has the fingerprint of "
                "another name: rename it"
            )
        is_new = sight == Sight.NEW
        settling = None if sight == Sight.BACK else self._settling
        if settling is not None and settling.is_settling(file.path, file.version, is_new=is_new):
            return None
        self._tally.on_found()
        if is_new:
            self._names.unsent.add(file)
            return None
        assert before is not None, "its sight was not NEW"
        return ChangedFile(before, file)
