"""Checks of access to a root (list, write, read, delete) and to the sources (list, read, queue)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

import obstore

from actors.notifications.message_queue import MessageQueue
from actors.objects.object_store import RETRY_FOR_A_USER_S, ObjectStore
from actors.objects.store_errors import ask_store
from actors.settings import FetchSettings
from actors.sources.discovery import Notifications
from actors.sources.source import SourceDefinition
from actors.sources.source_schema import SAMPLE_FILES
from slackwater.planning.samples.likely_mistakes import look_at, without_files
from slackwater.planning.shown_schema import listed_files
from slackwater.plugins.doctor.finding import Finding, remedy_of
from state.capabilities.probe import CONSEQUENCES, ROOT_NEEDS, probe
from state.clock import Clock
from state.errors import DamagedStoreError, RootMismatchError, SlackwaterError, StoreNotFoundError
from state.location import Location
from state.objects.object_client import object_client
from state.ownership.owner import new_run_id
from state.tables.catalog import Catalog
from state.tables.tables import FORMAT_VERSION

# S3 gives times in whole seconds, and refuses a request whose time is 15 minutes off.
_NOTICED_S = 5.0
_REFUSED_S = 900.0


class StoreAccessCheck:
    """Lists the root, and probes its store with an object of its own, which it deletes.

    Args:
        root: the root of a pipeline.
        clock: the clock to compare with the store's.
    """

    name = "root"

    def __init__(self, root: Location, clock: Clock) -> None:
        self._root, self._clock = root, clock

    def findings(self) -> Iterator[Finding]:
        if self._root.is_local and not self._root.path.exists():
            yield Finding.ok(self.name, f"{self._root} does not exist yet; the first run creates it")
            return
        try:
            page = next(ObjectStore(self._root, retry_within_s=RETRY_FOR_A_USER_S).list_pages())
            amount = f"{page.table.num_rows:,} objects on its first page" if page.table.num_rows else "it is empty"
            yield Finding.ok(self.name, f"{self._root} can be listed: {amount}")
            yield from self._format()
            yield from self._probed()
        except SlackwaterError as error:
            yield Finding.wrong(self.name, str(error), remedy_of(error))

    def _format(self) -> Iterator[Finding]:
        """Opens the store of the root, if there is one, as a reader."""
        from state.lance.lance_root import LanceRoot

        about = "root's format"
        try:
            LanceRoot(self._root, self._clock).open(read_only=True)
        except StoreNotFoundError:
            return
        except (RootMismatchError, DamagedStoreError) as error:
            yield Finding.wrong(about, str(error), "see guide/upgrades in the documentation")
            return
        yield Finding.ok(about, f"format {FORMAT_VERSION}, which this version reads and writes")

    def _probed(self) -> Iterator[Finding]:
        before = self._clock.now()
        probed = probe(self._root, new_run_id(self._clock))
        after = self._clock.now()
        for capability in ROOT_NEEDS:
            violation = probed.violations.get(capability)
            if violation is None:
                yield Finding.ok(capability.value, "the store has this capability")
            else:
                found = f"{violation}, so {CONSEQUENCES[capability]}"
                yield Finding.wrong(capability.value, found, "use a store that has this capability")
        yield self._clocks(probed.written_at, before, after)
        if probed.left:
            remedy = "delete the object, and allow this user to delete: a run must delete, too"
            yield Finding.wrong("deleting", f"{probed.left}; the test object is left there", remedy)
        else:
            yield Finding.ok("deleting", "the test object is deleted")

    def _clocks(self, written: datetime, before: datetime, after: datetime) -> Finding:
        """Compares the clocks; the object was written between `before` and `after`."""
        ahead_s = (before - written).total_seconds()
        behind_s = (written - after).total_seconds()
        off_s = max(ahead_s, behind_s, 0.0)
        about, remedy = "clock", "set this machine's clock (timedatectl set-ntp true), or the store's"
        found = f"{off_s:,.0f} s {'ahead of' if ahead_s > behind_s else 'behind'} the store's"
        if off_s >= _REFUSED_S:
            return Finding.wrong(about, found, remedy)
        if off_s >= _NOTICED_S:
            return Finding.warning(about, f"{found}: include_existing=False compares the two", remedy)
        return Finding.ok(about, "it agrees with the store's")


_PAGES = 10


class SourceAccessCheck:
    """Lists the first pages of a source, reads a byte of the first file, and compares its files with its options.

    Args:
        source: the source as it is declared.
        root: the root that may have recorded other defaults for the source, see `SourceDefinition.as_recorded`.
        clock: the clock of the root.
    """

    def __init__(self, source: SourceDefinition, root: Location, clock: Clock) -> None:
        self._source, self._root, self._clock = source, root, clock
        self.name = f"source {source.name}"

    def findings(self) -> Iterator[Finding]:
        try:
            yield from self._listed_and_read()
        except SlackwaterError as error:
            yield Finding.wrong(self.name, str(error), remedy_of(error))
        discovery = self._source.discovery
        if isinstance(discovery, Notifications):
            about = f"{self.name}'s queue"
            try:
                depth = MessageQueue(discovery, self._source.location).depth()
                yield Finding.ok(about, f"{depth.visible:,} messages wait, {depth.in_flight:,} are in flight")
            except SlackwaterError as error:
                yield Finding.wrong(about, str(error), remedy_of(error))

    def _listed_and_read(self) -> Iterator[Finding]:
        store = ObjectStore(self._source.location, retry_within_s=RETRY_FOR_A_USER_S)
        store.check()
        source, names = self._as_recorded(), 0
        for page in islice(store.list_pages(), _PAGES):
            names += page.table.num_rows
            batches = (source.path_filter.taken(batch) for batch in page.table.to_batches())
            files = (file for batch in batches for file in listed_files(source.name, batch))
            first = list(islice((file for file in files if file.size), SAMPLE_FILES))
            if first:
                yield self._read(first[0].path)
                for note in look_at(source, FetchSettings(), first).notes:
                    yield Finding.warning(self.name, note, "see guide/sources in the documentation")
                return
        yield Finding.warning(self.name, without_files(source, names), "correct it, unless the first file is to come")

    def _as_recorded(self) -> SourceDefinition:
        """The source with the defaults that its root has recorded; as declared if the root cannot be read."""
        from state.lance.lance_root import LanceRoot

        try:
            # Lance would wait longer for a store that does not answer.
            ObjectStore(self._root, retry_within_s=0).check()
            catalog = Catalog.of(LanceRoot(self._root, self._clock).open(read_only=True).scan("catalog"))
        except SlackwaterError:
            return self._source  # the check of the root reports it
        known = catalog.sources.get(self._source.name)
        return self._source if known is None else self._source.as_recorded(known.definition)

    def _read(self, path: str) -> Finding:
        location = self._source.location
        client = object_client(location)
        ask_store(lambda: obstore.get_range(client, path, start=0, length=1), location, path)
        return Finding.ok(self.name, f"{location} can be listed, and {path} can be read")
