"""A process that commits epochs of many files and folds them, and says what it holds in memory.

    python -m tests.state.upkeep.fed_store ROOT EPOCHS...

After each of these numbers of epochs it prints the MiB that it shares with no file.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from state.allocation import share_arenas
from state.clock import ManualClock
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from state.upkeep.housekeeping import Housekeeping
from state.upkeep.retention import RetentionSettings

FILES = 500
_VERSION = b"8 bytes."


def main() -> None:
    root, *moments = sys.argv[1:]
    share_arenas()
    clock = ManualClock()
    lance_root = LanceRoot(Location(root), clock)
    store = lance_root.create_or_open()
    store.take_over()
    upkeep = Housekeeping(lance_root, clock, RetentionSettings())
    for epoch in range(1, int(moments[-1]) + 1):
        store.commit(epoch=epoch, delta=_delta(epoch), views={}, counts=EpochCounts(), seconds=EpochSeconds())
        while upkeep.due(store) and (staged := upkeep.stage(store)) is not None:
            upkeep.commit(store, staged)
        if str(epoch) in moments:
            print(_mib(), flush=True)


def _delta(epoch: int) -> Delta:
    """Files are queued, and those of the epoch before are done."""
    builder = DeltaBuilder()
    for path in _paths(epoch):
        builder.put("seen", path.encode(), 1, source="events", version=_VERSION)
        builder.put("queue", path.encode(), 1, source="events", path=path, version=_VERSION, size=8_192)
    for path in _paths(epoch - 1):
        builder.delete("queue", path.encode(), 1)
        builder.put("ledger", path.encode(), 1, source="events", path=path, version=_VERSION, size=8_192, status="done")
    return builder.build()


def _paths(epoch: int) -> list[str]:
    # Spread over the keys of the files before, so that a fold reads them all.
    return [f"day={number % 97:02}/part-{epoch:06}-{number:04}.parquet" for number in range(FILES)]


def _mib() -> int:
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) >> 10


if __name__ == "__main__":
    main()
