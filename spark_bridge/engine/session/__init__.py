"""The SparkSession: settings, start and end, and jobs on it that always end.

    prepare_java -> begin_session -> finish_session -> SparkJobs.run ... -> stop_session

A process has one Spark application: the run's own on Ray (`session`), the user's on Ray (`borrowed_session`), or a
local one without Ray (`local_session`).

Invariants: views are computed under `SparkSettings` in each case; the user's application and session are never ended;
a job ends with a result, or with an error of `state.errors`, such as `SparkLostError`.

Face: `settings`, `session`, `local_session`, `spark_jobs`.
"""
