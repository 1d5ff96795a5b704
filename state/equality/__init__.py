"""Equality: the one definition of "the same row", for Arrow, Spark, Lance and Python.

Two relations are needed, and every comparison in the code uses one of them:

* **SQL equality**: the values that Spark puts into one group.  `GROUP BY`, `DISTINCT`, `JOIN`, `PARTITION BY`,
  `UNION`, `EXCEPT` and `INTERSECT` use it, and so do group keys, join hashes and keys of sources.
* **Identity**: the values that no query can distinguish.  A retracted row removes an identical stored row, and a change
  exists only between rows that are not identical.

Identical values are always equal in SQL.  The opposite is false: `cast(k AS string)` distinguishes -0.0 from 0.0.
So a correction that changes only the sign of a zero is a change, though both zeros are one group.

| values | SQL equality | identity |
|---|---|---|
| nulls | equal | equal |
| -0.0 and 0.0 | equal | different |
| NaNs with other bits | equal | equal: Spark's expressions see one NaN |
| integers, booleans, dates, binaries | by value | by value |
| decimals of one type | by value | by value; a comparison of two types is cast by Spark first |
| timestamps | the moment, to the microsecond, in every year | the same |
| strings | by their bytes: no normalisation, case and trailing spaces count | the same |
| a null array, an empty array, an array of one null | different | different |
| arrays and structs | element by element, at every level | element by element |
| maps | refused: Spark 3.5 does not group by them | entry by entry, in their order |

Where each form of the definition is:

| form | SQL equality | identity |
|---|---|---|
| a text for each value or row, also stored | `value_texts(SQL)`, `state.tables.group_key` | `row_texts` |
| Arrow columns in one process | `value_texts(SQL)` | `exact`, `kinds_of`, `differ` |
| Spark expressions | `Catalyst.normalised`, `Catalyst.hash_of` | value and text: `global_window_rows`, `total_order` |
| Lance conditions | `WantedRows.condition`, a superset | none: rows are found by their hash |

Rows that tie in all columns by SQL equality, but are not identical, are ordered by their text, see
`spark_bridge.plans.total_order`.  Without this, a limit or a window would choose another of them after a restart.

Invariants:

* Nothing else compares, hashes or encodes rows and values of users: Python's `repr` and `==`, and Arrow's kernels on
  floating or nested columns, implement neither relation.
* The texts of SQL equality are stored as group keys: their form never changes within a format of the store.
"""
