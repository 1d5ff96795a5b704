"""The rows that an epoch changes: those of corrected files, of other views, of joins, windows, limits and subqueries.

    corrections                     old and new rows of replaced and removed files
    change_set                      what leaves a view and what comes, by the keys of its rows
    parent_rows ── parents          the changed rows of the views that a view reads, and all of their rows
    joined_rows                     the rows of a join, which nobody stores
    └─ joined_changes, joined_positions     those that change: changed rows, and their partners of before and after
    touched_rows                    the changed rows of a window: all rows of the keys that are touched, computed twice
    limited_rows ── first_rows      the changed rows of a limit: the first rows, kept with spare ones, before and after
    whole_rows                      the changed rows of a query over all rows, computed before and after
    beside_rows                     the changed rows of a query over rows with single values beside them
    timed_rows                      the changed rows of a filter by the time: those that it has reached since
    leaf_queries                    what joins, windows and limits compute, made once
    equal_rows                      which of equal rows leave or stay, for rows without a key
    sides ── rows_before            the rows of a side of a join, or below a window, by the hash of their key
             └─ memory_tier                 those that are kept in this process, the hottest ones

`Changes` is the face that a grouping follows, whatever its rows are.

Invariants: what leaves was there before the epoch, and what comes is there after it, each as often as in the rows; a
side of a join is looked up once an epoch, and two sides are paired once, for all views that join them.

The rooms `views` and `materializer` use it.
"""
