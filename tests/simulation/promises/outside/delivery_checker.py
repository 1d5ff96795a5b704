"""Checks that a file is not read more often than it was written."""

from __future__ import annotations

from collections import Counter

from actors.files import FileKey
from tests.simulation.memory.file_tables import FileTables, file_of
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.bucket import Bucket


class DeliveryChecker:
    """Checks that the ledger has no more deliveries of a content than there were: no row is read twice.

    Args:
        bucket: the files.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def check(self, tables: FileTables) -> None:
        """Checks the next version of the store."""
        read = Counter[FileKey]()
        for row in tables.ledger.values():
            if row["status"] == "done":
                source, path, version = file_of(row)
                read[source, path, self._bucket.listed_version(version)] += 1
        for file, times in read.items():
            if times > 1 and times > self._bucket.written[file]:
                raise PromiseBroken(
                    "kept", f"{file[1]} is read {times} times, and was written {self._bucket.written[file]} times"
                )
