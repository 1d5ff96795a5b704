"""Warnings about indexes of views that a run has found to be wrong."""

from __future__ import annotations

from slackwater.status.run_status import RunStatus
from state.ownership.owner import Owner


def wrong_indexes(owner: Owner | None) -> list[str]:
    """One line for each view whose indexes differed from its rows, as the status of the last run reports them."""
    status = RunStatus.of_owner(owner)
    if status is None:
        return []
    return [
        f"{name}: {count} of its indexes differed from the rows, and were rebuilt or dropped: earlier epochs may have "
        "read other rows; run `slackwater verify`"
        for name, count in status.rebuilt_indexes.items()
    ]
