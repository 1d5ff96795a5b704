"""`reingest` of a name that came again: the version is of the kind that the ledger has."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from actors.files import FileVersion
from slackwater.running.delivered_versions import delivered_versions
from state.clock import ManualClock
from state.tables.delta import DeltaBuilder
from state.tables.fingerprint import delivery_fingerprint
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochSeconds
from state.vnode import vnode_of
from tests.actors.flow import AT, file
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_store import MemoryStateStore

DAY = timedelta(days=1)
V = file("a").version


def store(*rows: tuple[bytes, datetime, dict[str, Any]]) -> MemoryStateStore:
    made = MemoryStateStore.create_or_open(MemoryDisk(), ManualClock())
    made.take_over()
    delta = DeltaBuilder()
    for version, time, noted in rows:
        fields = {"source": "s", "path": "a", "version": version, "last_modified": time, "status": "done", **noted}
        delta.put("ledger", encode_key("s", "a", version), vnode_of("a"), **fields)
    made.commit(epoch=1, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    return made


@pytest.mark.parametrize(
    ("rows", "is_delivered"),
    [
        ([(V, AT, {})], False),
        ([(V, AT - DAY, {})], False),  # written again, and never deleted
        ([(V, AT, {"deleted_epoch": 1})], False),  # the deleted object is there again
        ([(V, AT - DAY, {"deleted_epoch": 1})], True),
        ([(V, AT - DAY, {"changed_epoch": 1})], True),
        ([(delivery_fingerprint(V, AT - DAY), AT - DAY, {})], True),
    ],
)
def test_a_name_with_deliveries_is_read_again_by_delivery(
    rows: list[tuple[bytes, datetime, dict[str, Any]]], is_delivered: bool
) -> None:
    found: FileVersion = file("a")
    expected = replace(found, version=delivery_fingerprint(V, AT)) if is_delivered else found
    assert delivered_versions(store(*rows), [found]) == [expected]
