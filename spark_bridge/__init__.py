"""From Arrow blocks to views: Spark computes, Lance keeps, and an epoch costs what it brings.

Data flow of one epoch::

    blocks (references to Arrow IPC bytes)          hand_over: one DataFrame per source, no pandas
        │
        ↓  per view, views side by side
    append     row-by-row plan ── one job ──→ rows ────────────────────────────────→ append
    aggregate  Spark's partial aggregation ── one job ──→ buffers per touched group
                                          + stored buffers of those groups (look-up by __sw_key)
                                          → merge, then the query's own expressions → upsert
    DISTINCT   pairs of group and value ── one job ──→ those that are not stored (look-up by __sw_key) → append
                                          → the function's partial aggregation over them ── one job ──→ as above
    stored rows   fragments that the fetch actors have staged, without Spark ──────→ append

Behind the new rows come the corrections: files whose rows go, and others in their place.  Stored rows first; then the
groups that they touch are computed again from all stored rows, and append views delete by the number of the file.

Between two epochs::

    backfill   a piece of what was ingested before it ── as an epoch's rows ──→ its dataset, which nobody is shown
    full view   all stored rows of its sources ── one job, in a thread beside ──→ a new version, for the next epoch

How a view gets there: `analyse` lets Spark analyse the query, or call the function, over empty frames; the analysed
plan decides the class, or the view is refused with the operator named.  The plan is kept.  An epoch puts its rows under
the plan's leaves, whose attributes stay the same, so nothing is parsed or analysed again.  What the catalog has decides
whether it begins with the first rows, goes on, or is late.

Invariants:

* Every value in a view is computed by Spark's own expressions; no aggregate is computed in Python.
* A view at an epoch is its query over all rows so far.  Sums of floating-point numbers may differ in the last digits.
  A full view is that at an earlier epoch, which its record names.
* What is not complete is recorded under a name with a dot, and shown to nobody.
* The work of an epoch depends on its rows and the groups that they touch, never on the size of the view.
* One writer: each commit of a view makes exactly the version after the last one, or the run recovers.
* A view's dataset is created once, at a path with its creation epoch that is never used twice.
* Nothing is executed when a view is declared.  What cannot be maintained is refused before anything is read.
* References are held until the last job over them is over.
* Whatever waits for Spark ends: with a result, an error, or, when the application is gone, `SparkLostError`.

Map:

    session            the SparkSession on RayDP, warming it up
      java             which Java there is
      ray_application  the processes of an application on RayDP: start, life, end
      app_master       the Ray actor that starts its executors; class_path of all its JVMs
      class_archive    the classes of Spark as Java has them in memory, from one start for the next
      borrowed_session the one that the user has started
      driver_jvm       the JVM of the session
      spark_log        what keeps Spark off the terminal
      begin_call       a call that may never come back
    spark_jobs         work on Spark that always ends
    work_times         how long each piece of it takes
    view_definition    what a user declares
    analysis           definition -> ViewPlan, or a refusal
      operators        what can be maintained, and what to say about the rest
      function_source  the Python functions of a view, as text
      identity         the text by which a view is recognised
      full_analysis    what may be recomputed as a whole
      visible_columns  the columns of its sources that a view knows
      result_columns   where a result's columns come from
    view_plan          an analysed view; moments: what current_timestamp() is in it
    declaration        the declared views against those of the catalog
    aggregates         the calls of aggregate functions in a query
      aggregate_function   which functions can be maintained
      declarative_buffer, typed_buffer    how Spark merges and evaluates a function's buffer
    aggregate_plan     how an aggregate view is maintained:
      partial_aggregation  the job over new rows; physical_aggregation: Spark's plan of it
      distinct_set         which values of DISTINCT calls are new
      merge_plan           new buffers and stored ones -> buffers and result
      driver_projection    compiled expressions over the rows of the driver
    view               what the maintenance of one view is: append_view, aggregate_view
    backfills         those that catch up; backfill: one of them; history: what it reads
    full_views         those that are recomputed; full_view: one of them
    stored_rows        the rows of a materialized source
    corrected_rows     what a correction takes out of them and puts in
    correctable        which views can follow that
    file_column        the number of its file on each row of an append view
    view_table         its Lance dataset
      row_deletions    the rows that an upsert replaces
    result_rows        how the rows of a DataFrame come into it; staged_rows: written by Spark's tasks
    materializer       all views, epoch by epoch; shown_view: how far one of them is
      view_planner     what the declared views are, analysed once
      row_hand_over    the rows of an epoch, handed over once for all views
    recomputation      one view in one go, to verify it
    epoch_rows         what an epoch brings, and what came of it
    hand_over          blocks to DataFrames; dataset_frame: a Lance dataset to one
    arrow_frames       Arrow tables to DataFrames and back
    leaves, catalyst   Spark's plans from Python
    spark_message      Spark's errors in one line
"""
