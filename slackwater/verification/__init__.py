"""`slackwater verify`: every view, computed again from the files that the ledger names, by engines that kept no view.

    ledger at the epoch ──► recorded_source   which rows of which version of which file a view is made of
                                │
                                ▼ one listing of the prefix: is each version still there?   no → not checkable
                            ingested_files    the content, each request bound to the recorded etag
                                │
              ┌─────────────────┴──────────────────┐
              ▼                                    ▼
        duckdb_engine                        spark_engine
        its own readers, its own SQL         our readers, Spark's exact meaning
              └─────────────────┬──────────────────┘
                                ▼
                            comparison        the view's rows against the engine's: missing, extra, changed

Which engine: DuckDB first, because it shares no code with what made the view.  When it agrees, that settles it: two
programs do not make the same mistake.  When it does not, its SQL may simply mean something else, so Spark decides.

The stored rows of a source are compared with the ledger alone: from each version of each file as many rows as were
ingested of it, each position once, none of them quarantined (`stored_rows`).

Invariants:

* What was replaced or forgotten is left out.
* A view is compared over exactly the first `rows_read` records of each file of the ledger of its epoch, less those that
  are quarantined, whatever the file's status; a frozen view over those of the epoch at which it was frozen.
* Which records are bad is found again: by our readers one by one, by DuckDB in its own way, and by their number.
* Another version of a file is never read in place of the recorded one.
* DuckDB reads files with its own readers.  Beside copies of the ingested files it can read and write nothing.
* Only file contents pass through: in pieces, a few files ahead, and on disk while they are needed.  The result of a
  view must fit into memory twice.
* No name or value from a file or a ledger becomes part of an SQL text; names of columns and sources are quoted.

    verifier.py         Verifier: the views one after the other, and who decides
    computation.py      Computation: one engine over one ledger
    verification.py     Verification, ViewCheck: what is reported
    step.py             Step: what is shown meanwhile
    recorded_source.py  a source and its ingested files at one epoch
    ingested_files.py   whether they are still the same, and their content
    engine.py           Engine: what both engines do, and how they say that they cannot
    duckdb_engine.py    DuckDB
    duckdb_files.py     which rows of a file fit, as DuckDB sees it
    spark_engine.py     Spark, in a local session that is started when it is first needed
    comparison.py       two tables, row by row
    stored_rows.py      the stored rows of a source, against the ledger
"""
