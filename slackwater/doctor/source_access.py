"""Whether a source can be listed and read, and its queue asked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import obstore

from actors.notifications.message_queue import MessageQueue
from actors.objects.object_store import ObjectStore
from actors.objects.store_errors import ask_store
from actors.sources.discovery import Notifications
from actors.sources.path_filter import PathFilter
from actors.sources.source import SourceDefinition
from slackwater.doctor.finding import Finding
from slackwater.doctor.storage_error import remedy_of
from state.errors import SlackwaterError
from state.objects.object_client import object_client

_PAGES = 10


class SourceAccessCheck:
    """Lists the first pages of a source, and reads a byte of the first file.

    Args:
        source: as declared.
    """

    def __init__(self, source: SourceDefinition) -> None:
        self._source = source
        self.name = f"source {source.name}"

    def findings(self) -> Iterator[Finding]:
        try:
            yield self._listed_and_read()
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

    def _listed_and_read(self) -> Finding:
        source, accepts = self._source, PathFilter(self._source.pattern).accepts
        names = 0
        for page in islice(ObjectStore(source.location).list_pages(), _PAGES):
            for path, _, size, _ in page.objects():
                names += 1
                if accepts(path) and size:
                    return self._read(path)
        found = f"{source.location} can be listed; none of the first {names:,} names is a file of {source.pattern}"
        return Finding.warning(self.name, found, "nothing is wrong if the first file is still to come")

    def _read(self, path: str) -> Finding:
        location = self._source.location
        client = object_client(location)
        ask_store(lambda: obstore.get_range(client, path, start=0, length=1), location, path)
        return Finding.ok(self.name, f"{location} can be listed, and {path} can be read")
