"""Table of the actions on files after the commit, and their text for one file."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.tables.file_table import whole_urls
from slackwater.status.run_status import RunStatus
from state.lance.handled_files import SCHEMA, HandledFiles
from state.location import Location
from state.ownership.owner import Owner
from state.tables.catalog import Catalog

HANDLED_SCHEMA = pa.schema(
    [SCHEMA.field(name) for name in ("source", "path", "action", "outcome", "at", "epoch", "error")]
)
_TIME = "the stated time has to pass"
_DONE = {"delete": "deleted", "move": "moved", "tag": "tagged"}


def handled_table(root: Location, catalog: Catalog, source: str | None, until: datetime | None = None) -> pa.Table:
    """See `Ledger.handled_files`.

    Args:
        catalog: as of which sources are known.
        source: only files of this source.
        until: nothing later counts.
    """
    rows = HandledFiles(root).table(source).select(HANDLED_SCHEMA.names)
    rows = rows.filter(pc.is_in(rows["source"], value_set=pa.array(list(catalog.sources), pa.string())))
    if until is not None:
        rows = rows.filter(pc.less_equal(rows["at"], pa.scalar(until, HANDLED_SCHEMA.field("at").type)))
    return rows.set_column(1, "path", whole_urls(rows, catalog)) if rows.num_rows else rows


def waiting_lines(owner: Owner | None, source: str) -> list[str]:
    """The condition that finished files of a source wait for, by the last report of a run.  A sentence for each action.

    Args:
        owner: the process that runs on the root or ran last; None without one.
        source: the name of the source.
    """
    status = RunStatus.of_owner(owner)
    return [
        f"It is to be {_participle(each.action)} after the commit, and waits: {each.waits_for or _TIME}."
        for each in (() if status is None else status.after_commit)
        if each.source == source
    ]


def handled_lines(root: Location, source: str, path: str, until: datetime) -> list[str]:
    """The last result of each action on a file, a sentence each.

    Args:
        source: the name of the source.
        path: of the file, relative to the source.
        until: nothing later counts.
    """
    last = {row["action"]: row for row in HandledFiles(root).table(source, path).to_pylist() if row["at"] <= until}
    return [
        _line(action, row["outcome"], f"{row['at']:%Y-%m-%d %H:%M:%S} UTC", row["error"])
        for action, row in last.items()
    ]


def _line(action: str, outcome: str, at: str, error: str | None) -> str:
    done = _participle(action)
    match outcome:
        case "done":
            return f"It was {done} after the commit, at {at}."
        case "absent":
            return f"It was to be {done} after the commit, and was not there any more at {at}."
        case "changed":
            return f"It was not {done} after the commit: at {at} another version of it was there, which stays."
        case "waits":
            return f"It is not {done} yet, at {at}: {error}. A run looks at it again."
        case _:
            return f"It could not be {done} after the commit, at {at}: {error}. A run tries it again."


def _participle(action: str) -> str:
    verb, _, rest = action.partition(" ")
    return f"{_DONE[verb]} {rest}".strip()
