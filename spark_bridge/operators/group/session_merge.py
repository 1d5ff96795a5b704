"""Sessions that touch are put together, with their partials, as Spark puts those of rows together.

    open sessions   a [1, 5]   a [9, 12]                 b [2, 3]
    new sessions        a [4, 10]           a [20, 25]
    together        a [1, 12]               a [20, 25]   b [2, 3]

The sessions of one key, in the order of their beginnings, are one until one begins after all ends before it.  Their
partials are merged in pairs: each round halves them, however many sessions a new one connects.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from actors.sources.event_time import event_times_us
from state.tables.group_key import KEY_COLUMN

MergeGroups = Callable[[pa.Table, pa.Table], pa.Table]
"""Groups, and others with the same keys → the groups, in their order, with the partials of both."""


def together(sessions: pa.Table, session: str, merge: MergeGroups) -> pa.Table:
    """One row for all sessions that touch, with the partials of all of them.

    Args:
        sessions: grouping and partials; `__sw_key` is the text of the other grouping columns, equal for the sessions
            that may touch.
        session: the column of the grouping with the session, a struct of `start` and `end`.
        merge: merges the partials of groups, whose keys are unique.
    """
    if sessions.num_rows == 0:
        return sessions
    sessions, begins = _in_order(sessions, session)
    whole = np.cumsum(begins) - 1
    place = np.arange(len(whole)) - np.flatnonzero(begins)[whole]
    keys, schema = sessions.column(KEY_COLUMN).combine_chunks().filter(pa.array(begins)), sessions.schema
    while place.any():
        second = np.flatnonzero(place % 2)
        first = second - 1
        pairs = pa.array(np.arange(len(second))).cast(pa.string())
        merged = merge(_keyed(sessions.take(second), pairs), _keyed(sessions.take(first), pairs))
        alone = np.setdiff1d(np.arange(len(place)), np.concatenate([first, second]))
        sessions = pa.concat_tables([sessions.take(alone), merged.select(schema.names).cast(schema)])
        rest = np.concatenate([alone, second])
        whole, place = whole[rest], place[rest] // 2
        order = np.lexsort((place, whole))
        sessions, whole, place = sessions.take(order), whole[order], place[order]
    return _keyed(sessions, keys)


def _in_order(sessions: pa.Table, session: str) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """The sessions by key and beginning, each with the times of all that touch it; and which are the first of those."""
    keys = sessions.column(KEY_COLUMN).combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    times = sessions.column(session)
    start, end = (event_times_us(pc.struct_field(times, name)).to_numpy() for name in ("start", "end"))
    order = np.lexsort((start, keys))
    keys, start, end = keys[order], start[order], end[order]
    # The greatest end so far within a key: numbers of ends, above those of the keys before.
    ends, number = np.unique(end, return_inverse=True)
    latest = ends[np.maximum.accumulate(keys * len(ends) + number) - keys * len(ends)]
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = (keys[1:] != keys[:-1]) | (start[1:] > latest[:-1])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(keys)) - 1
    whole = np.cumsum(begins) - 1
    fields = [*times.type]
    of_whole = [
        pa.array(values[whole]).cast(pa.timestamp("us", field.type.tz)).cast(field.type)
        for values, field in zip((start[first], latest[last]), fields, strict=True)
    ]
    at = sessions.schema.get_field_index(session)
    column = pa.StructArray.from_arrays(of_whole, fields=fields)
    return sessions.take(order).set_column(at, sessions.schema.field(at), column), begins


def _keyed(groups: pa.Table, keys: pa.Array) -> pa.Table:
    at = groups.schema.get_field_index(KEY_COLUMN)
    return groups.set_column(at, groups.schema.field(at), keys)
