"""How fresh an epoch is: the youngest of its files, as the delta of the epoch tells them."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from state.tables.delta import Delta

_LEDGER = "ledger"
_DONE = "done"


def youngest_files(delta: Delta) -> dict[str, datetime]:
    """Source → when the youngest of the files was written that the epoch finished.

    What was staged is not looked at: so many files are no news.
    """
    part = delta.parts.get(_LEDGER)
    if part is None or not len(part):
        return {}
    if isinstance(part, pa.Table):
        rows = pa.Table.from_struct_array(part["row"].combine_chunks())
        done = rows.filter(pc.equal(rows["status"], _DONE))
        found = done.group_by("source").aggregate([("last_modified", "max")]).to_pylist()
        times = [(row["source"], row["last_modified_max"]) for row in found]
    else:
        changes = [change.fields for change in part.values() if change.fields.get("status") == _DONE]
        times = [(fields["source"], fields.get("last_modified")) for fields in changes if "source" in fields]
    youngest: dict[str, datetime] = {}
    for source, time in times:
        if time is not None:
            youngest[source] = max(time, youngest.get(source, time))
    return youngest
