"""The maintenance of groups: partial aggregation of new rows, and the merge with stored buffers.

    new rows ── partial_aggregation, one job ──→ buffers of touched groups ─┐
    stored buffers of these groups ─────────────────────────────────────────┴─ merge_plan ──→ state and result

`aggregate_plan` combines both for one view.  `subtraction_plan` takes rows that leave off the stored buffers before
that.  `session_merge` puts groups of sessions that touch together.  `distinct_set` finds the new values of DISTINCT
calls, and, where their rows are counted, those that leave.  The merge is computed in the driver, without a job.

Invariants: buffers are filled, merged and evaluated by Spark's own code; plans are made once per view; an epoch runs
one job, and two more for each distinct set.

The room `views` alone uses it.
"""
