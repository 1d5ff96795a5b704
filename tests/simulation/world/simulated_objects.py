"""The objects of a bucket, as corrections look for them."""

from __future__ import annotations

from collections.abc import Sequence

from actors.files import FileVersion, PathKey
from state.tables.records import CatalogView, ViewVersion
from tests.simulation.world.bucket import Bucket


class SimulatedObjects:
    """See `CorrectableFiles`.

    Args:
        bucket: the objects.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def find(self, paths: Sequence[PathKey]) -> list[FileVersion | None]:
        return [self._bucket.find(*path) for path in paths]

    def refusal(self, view: CatalogView, version: ViewVersion | None) -> str | None:
        return None  # model views know the file of every row
