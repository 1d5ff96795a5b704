"""The rows of joins, windows, limits and subqueries, and those that an epoch changes.  Nobody stores them.

    parent_rows                     the changed rows of all that a view reads, and all of its rows
    joined_rows                     the rows of a join
    ├─ joined_changes ── hot_keys   those that change: changed rows, and their partners of before and after
    └─ large_sides                  the same for many rows, which Spark's tasks read and join
    touched_rows                    the changed rows of a window: all rows of the keys that are touched, computed twice
    limited_rows                    the changed rows of a limit: the first rows, kept with spare ones, before and after
    global_window_rows              the changed rows of a query over all rows, computed before and after
    scalar_subquery_rows            the changed rows of a query over rows with single values beside them
    temporal_filter_rows            the changed rows of a temporal filter, which the time has reached since

Invariants: what a module calls changed is the difference of its rows before and after the epoch, as bags, and none
leaves that was not there; but of a join whose rows expire, one may leave that was not there, and come again.

The rooms `views` and `materializer` use it.
"""
