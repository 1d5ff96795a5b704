"""The maintenance of groups: partial aggregation of new rows, and the merge with stored buffers.

    aggregate_calls                 the calls of a query in three steps: update, merge, evaluate
    ├─ aggregate_functions          the functions that can be maintained, and advice for the others
    └─ buffers                      the buffers of Spark's functions, as expressions
    aggregate_view                  the dataset of groups: each epoch merges into it
    └─ closing_view                 groups of windows with emit on close

    new rows ── partial_aggregation, one job ──→ buffers of touched groups ─┐
    stored buffers of these groups ─────────────────────────────────────────┴─ merge_plan ──→ state and result

`grouped_rows` has the jobs of one view, `aggregate_plan` combines both, and `group_tables` has the datasets.
`subtraction_plan` retracts deleted rows from the stored buffers before that.  `session_merge` joins groups of sessions
that touch.  `distinct_set` finds the new values of DISTINCT calls, and, where their rows are counted, the deleted
values.  The merge is computed in the driver, without a job.

Invariants: buffers are filled, merged and evaluated by Spark's own code; plans are made once per view; an epoch runs
one job, and two more for each distinct set.

To maintain a further aggregate function, add its class to `aggregate_functions`.
"""
