"""The views, computed by Spark and stored in Lance: an epoch costs in proportion to its new rows.

Data flow of one epoch::

    blocks (references to Arrow IPC bytes)          ingest: one DataFrame per source
        │
        ↓  per view, views side by side
    append     projection plan ── one job ──→ rows ────────────────────────────────→ append
    aggregate  Spark's partial aggregation ── one job ──→ buffers per touched group
                                          + stored buffers of these groups (look-up by __sw_key)
                                          → merge, then the query's own expressions → upsert
    DISTINCT   pairs of group and value ── one job ──→ pairs that are not stored (look-up by __sw_key) → append
                                          → the function's partial aggregation over them ── one job ──→ as above
    join       changed rows of either side + their partners (look-up by __sw_join) → pairs with weights → as above
    stored rows   fragments that the fetch actors have staged, without Spark ──────→ append

After the new rows come the corrections: files whose old rows are replaced or removed.  Stored rows change first.  Then
old rows are subtracted from their groups, and new ones are merged; a group for which that is impossible is computed
again from its stored rows.  Append views delete by the number of the file.

Between two epochs::

    backfill   a piece of earlier rows ── as an epoch's rows, in a thread ──→ its dataset, hidden until complete
    full view  all stored rows of its sources ── one job, in a thread beside ──→ a new version, shown by the next epoch

`analyse` lets Spark analyse a query, or calls a function, over empty frames.  The analysed plan decides the class of
the view, or the view is refused with the operator named.  An epoch puts its rows under the plan's leaves, whose
attributes stay the same, so nothing is parsed or analysed again.

Invariants:

* Every value in a view is computed by Spark's own expressions; Python computes no aggregate.
* A view at an epoch is its query over all rows up to that epoch.  Sums of floating-point numbers may differ in the last
  digits.  A full view is its query at an earlier epoch, which its record names.
* A dataset that is not complete is recorded under a name with a dot, and hidden from readers.
* The work of an epoch depends on its rows and on the groups that they touch, never on the size of the view.
* One writer: each commit of a view makes exactly the next version, or the run recovers.
* A dataset is created once, at a path with its creation epoch that is never used twice.
* A declaration executes nothing.  A view that cannot be maintained is refused before a file is read.
* `declaration.py`, `recorded_views.py`, `backfills.py` and `full_views.py` in `maintenance/` import no Spark: the
  simulator runs them.
* References to blocks are held until the last job over them is over.
* Every wait for Spark ends: with a result, an error, or, if the application is gone, `SparkLostError`.

Rooms, each on those below it; `work_times` measures all of them:

| room | holds |
|---|---|
| `materializer` | the face of the package: declare views, run an epoch, add a piece of a backfill |
| `maintenance` | the life of views: declared, backfilled, shown, dropped; append, derived and full views |
| `query` | a declared view -> its class and plan, or its refusal |
| `operators` | joins, groups, windows, limits, scalar subqueries, temporal filters: one room each |
| `changes` | the rows that an epoch changes: of corrected files, and of other views |
| `ingest` | blocks and datasets as DataFrames, the history of a backfill |
| `plans` | definitions, plans and identities of views, conditions over their rows |
| `datasets` | the Lance datasets of views and of stored rows |
| `engine` | Spark: its processes on Ray, the session and jobs that always end, plans from Python |
"""
