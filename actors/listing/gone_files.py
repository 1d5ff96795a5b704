"""Which files of the ledger a listing should have shown and did not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from actors.files import GoneFile
from state.tables.fingerprint import path_fingerprint
from state.tables.keys import encode_key

if TYPE_CHECKING:
    from state.store.store import StateStore


@dataclass(frozen=True)
class GoneFound:
    """Path fingerprint → the rows of the ledger that do not say yet that the path is gone.

    What is still in a queue, or not yet in the store, is left out: it is found when it is finished.  `epoch` is the
    last committed one: of what was handed on later nothing is known.
    """

    epoch: int
    files: Mapping[bytes, tuple[GoneFile, ...]] = field(default_factory=dict)


def find_gone(store: StateStore, source: str, absent: Mapping[bytes, bytes]) -> GoneFound:
    """Looks for the paths of names that only `seen` knows, by their fingerprints.

    Args:
        store: as committed.
        source: whose they are.
        absent: path fingerprint → version fingerprint, as in `seen`.
    """
    ledger, queue = (_rows_of(store, table, source) for table in ("ledger", "queue"))
    versions = pa.array(list(absent.values()), pa.binary(8))
    may_be = pc.or_(pc.is_in(ledger["version"], value_set=versions), pc.is_valid(ledger["changed_epoch"]))
    unfinished = set(queue["path"].to_pylist())
    keys: dict[str, bytes] = {}
    for row in ledger.filter(may_be).select(["path", "version", "changed_epoch"]).to_pylist():
        key = path_fingerprint(source, row["path"])
        # The version that was handed on last has its row, or is noted in that of the version before.
        is_last = row["changed_epoch"] is not None or absent.get(key) == row["version"]
        if key in absent and is_last and row["path"] not in unfinished:
            keys[row["path"]] = key
    found: dict[bytes, list[GoneFile]] = {key: [] for key in keys.values()}
    own = ledger.filter(pc.is_in(ledger["path"], value_set=pa.array(list(keys), pa.string())))
    for row in own.filter(pc.is_null(own["gone_epoch"])).select(["path", "version"]).to_pylist():
        found[keys[row["path"]]].append(GoneFile(source, row["path"], row["version"]))
    return GoneFound(store.head.epoch, {key: tuple(files) for key, files in found.items()})


def _rows_of(store: StateStore, table: str, source: str) -> pa.Table:
    start = encode_key(source)
    return store.scan(table, start=start, end=start + b"\xff")
