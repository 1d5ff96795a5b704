"""The rows that an epoch changes, of corrected files and of the views that other views read.

    corrections                     old and new rows of replaced and removed files
    change_set                      the inserts and deletes of a view, by the keys of its rows
    parents                         the views that others read, in one epoch, and the places of their rows
    sides ── joined_positions       join state: the rows of one side, or below a window, by the hash of their key
    └─ rows_before ── memory_tier   the rows before the epoch; `cached_rows` has the most used ones in memory
    leaf_queries                    the queries of operators, planned once
    equal_rows                      the choice among equal rows without a key
    hot_keys                        keys whose number of rows decides the cost of an epoch
    view                            the interface of a view whose changes others follow, and its progress

`Changes` is the interface by which an aggregation reads changed rows, of corrected files or of its parents.

Invariants:

* A deleted row existed before the epoch, and an inserted row exists after it, with their multiplicities.
* All views that join two sides share one look-up of each side, and one pairing of them, in an epoch.

The rooms `operators` and `maintenance`, and the materializer, use it.
"""
