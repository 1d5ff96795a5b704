"""The operators of a query that keep state or look at other rows, one room each.

| room | maintains |
|---|---|
| `group` | `GROUP BY`, `DISTINCT`, windows with emit on close |
| `window` | window functions with `PARTITION BY`, windows of time, sessions |
| `scalar_subquery` | subqueries of one value |
| `join` | joins, `EXISTS`, `IN`, `INTERSECT`, `EXCEPT` |
| `limit` | `ORDER BY` with `LIMIT` |
| `global_window` | windows without `PARTITION BY`, long limits, `OFFSET` |
| `temporal_filter` | conditions on `now()` |

A room has the form in which its operator is maintained (`*_form`, `*_windows`, `*_conditions`: Spark's plan in, plan
out), and its rows (`*_rows`: all of them, or those that an epoch changes).  The rows of an operator other than `group`
are a leaf of the plan above it, see `plans.computed_leaves`, and are not stored.

Invariants: the changed rows of an operator are the difference of its rows before and after the epoch, as bags.  No row
leaves that was not there before.  One exception: a row of a join whose sides expire may leave without having been
there, and be inserted again.

The rooms `query` and `maintenance`, and the materializer, use it.
"""
