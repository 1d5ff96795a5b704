"""The rows that an epoch changes: those of corrected files, and those of the views that others read.

    corrections                     old and new rows of replaced and removed files
    change_set                      what leaves a view and what comes, by the keys of its rows
    parents                         the views that others read, in one epoch, and where their rows are
    sides ── joined_positions       join state: the rows of one side, or below a window, by the hash of their key
    └─ rows_before ── memory_tier   those before the epoch; the hottest ones are kept in this process (cached_rows)
    leaf_queries                    the queries of operators, made once
    equal_rows                      which of equal rows leave or stay, for rows without a key
    hot_keys                        keys with so many rows that they decide the cost of an epoch
    view                            the interface of a view whose changes others follow, and its progress

`Changes` is the face that an aggregation follows, whatever its rows are.

Invariants: what leaves was there before the epoch, and what comes is there after it, each as often as in the rows; a
side of a join is looked up once an epoch, and two sides are paired once, for all views that join them.

The rooms `operators` and `maintenance`, and the materializer, use it.
"""
