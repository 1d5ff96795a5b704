"""The tables that a run would publish views to, as they are now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slackwater.publishing.declaration import DeclaredPublication
from slackwater.publishing.publisher import opened_table
from slackwater.publishing.start_check import checked_epoch, latest_snapshot
from state.capabilities.store_record import root_identity
from state.clock import Clock
from state.errors import SlackwaterError
from state.location import Location


@dataclass(frozen=True)
class PublicationPlan:
    """What a run would do to a table first.

    Args:
        view: the name of the view.
        table: the format and place of the table.
        epoch: the epoch that the table has; None if it has none.
        beginning: what the run would write first, in words.
        refused: why a run would be refused; None if it would not.
    """

    view: str
    table: str
    epoch: int | None = None
    beginning: str = ""
    refused: str | None = None


def plan_publications(
    root: Location, publications: Iterable[DeclaredPublication], clock: Clock
) -> tuple[PublicationPlan, ...]:
    """Looks at each table.  Whether it can be written is not tried.

    Args:
        root: the root of the pipeline, which may not exist yet.
        publications: those of the pipeline.
        clock: gives the time.

    Raises:
        StorageError: the root cannot be read.
    """
    declared = tuple(publications)
    snapshot = latest_snapshot(root, clock) if declared else None
    identity = root_identity(root) if declared else ""
    plans = []
    for each in declared:
        table = str(each.target)
        try:
            epoch = checked_epoch(opened_table(each.target, clock), each, root, snapshot, identity)
        except SlackwaterError as error:
            plans.append(PublicationPlan(each.view, table, refused=str(error)))
            continue
        is_latest = snapshot is not None and epoch == snapshot.epoch
        beginning = "all rows of the view" if epoch is None else f"the epochs after {epoch}"
        plans.append(PublicationPlan(each.view, table, epoch, "nothing before new files" if is_latest else beginning))
    return tuple(plans)
