"""Table of the branches of a root."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from state.clock import Clock
from state.errors import StoreNotFoundError
from state.lance.branch_files import BranchFiles
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.upkeep.branches import Branch, branches_of

_BRANCHES = pa.schema(
    [
        ("branch", pa.string()),
        ("epoch", pa.int64()),
        ("latest_epoch", pa.int64()),
        ("state", pa.string()),
        ("url", pa.string()),
    ]
)


def branch_table(root: Location, tags: Mapping[str, int], clock: Clock) -> pa.Table:
    """See `Store.branches`."""
    return pa.Table.from_pylist([_row(root, each, clock) for each in branches_of(tags).values()], _BRANCHES)


def _row(root: Location, branch: Branch, clock: Clock) -> dict[str, Any]:
    files = BranchFiles(root, branch.name, clock)
    latest, state = None, "dropping"
    if not branch.is_dropping:  # a part of its store may be there, which does not open
        try:
            latest = LanceStateStore.open(files.location, clock, read_only=True).head.epoch
            state = "ready"
        except StoreNotFoundError:
            state = "unfinished" if files.are_there else "missing"
    return {
        "branch": branch.name,
        "epoch": branch.epoch,
        "latest_epoch": latest,
        "state": state,
        "url": files.location.url,
    }
