"""The operators of a query that keep state or look at other rows, one room each.

| room | maintains |
|---|---|
| `group` | `GROUP BY`, `DISTINCT`, windows with emit on close |
| `join` | joins, `EXISTS`, `IN`, `INTERSECT`, `EXCEPT` |
| `window` | window functions with `PARTITION BY`, windows of time, sessions |
| `limit` | `ORDER BY` with `LIMIT` |
| `global_window` | windows without `PARTITION BY`, long limits, `OFFSET` |
| `scalar_subquery` | subqueries of one value |
| `temporal_filter` | conditions on `now()` |

`group` is the class of a view: its groups are stored.  The rows of the other operators are stored nowhere.  Such an
operator is one class, `Operator`, and one line of `registry`:

    *_cut        the query → internal views with the rows below, and a leaf in place of the operator
    *_plan       the plan: its text, what it touches, its identity
    *_operator   the rows of the leaf: all of them, or those that an epoch changes
    *_form       the part of Spark's plan that belongs to the operator, in a form that can be maintained

`cut` has what the cuts of all operators use.

Invariants: the changed rows of an operator are the difference of its rows before and after the epoch, as bags.  No row
leaves that was not there before.  One exception: a row of a join whose sides expire may leave without having been
there, and be inserted again.

The rooms `query` and `maintenance`, and the materializer, use it.
"""
