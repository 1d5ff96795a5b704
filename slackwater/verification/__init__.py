"""`slackwater verify`: each view computed again from the files of the ledger, and compared with the stored view.

    ledger at the epoch ──► recorded_source   the ingested records of each file version
                                │
                                ▼ one listing: does each version still exist?   no ──► not checkable
                            ingested_files    the content, each request bound to the recorded etag
                                │
              ┌─────────────────┴──────────────────┐
              ▼                                    ▼
        duckdb_engine ──► duckdb_worker      spark_engine
        DuckDB's readers and SQL             the readers of a run, Spark's exact semantics
              └─────────────────┬──────────────────┘
                                ▼
                            comparison        rows of the view against rows of the engine: missing, extra, changed

DuckDB comes first, because it shares no code with the run.  If it agrees, the view is equal.  If it does not, its SQL
may have another meaning, so Spark decides.  `verifier` goes through the views; `verification` is the report.

The stored rows of a source are compared with the ledger alone (`stored_rows`): from each version of each file as many
rows as were ingested, each position once, none of them quarantined.

By the watermarks of its sources a view may show something else than its query: closed windows, rows without the late
ones, or rows that are young enough.  `recorded_watermarks` finds the watermarks that it has followed, in the record of
the epoch and in the quarantine.

Invariants:

* Replaced and forgotten files are left out.
* A view is compared over exactly the first `rows_read` records of each file in the ledger of its epoch, less the
  quarantined ones, for any status of the file; a stopped view over the ledger of the epoch at which it stopped.
* Bad records are found again: by the readers of a run one by one, by DuckDB with its own rules and by their number.
* Another version of a file is never read in place of the recorded one.
* DuckDB reads files with its own readers, in a worker process without credentials (`duckdb_tables`).  It can access
  nothing but copies of the ingested files and its tables.
* File contents are read in pieces, a few files ahead, and kept on disk only while needed.  The result of a view must
  fit into memory twice.
* No name or value from a file or a ledger becomes part of an SQL text; names of columns and sources are quoted.

Face: `verifier.Verifier`, `verification.Verification`, `step.Step`.
"""
