"""Publishing: a view of a root as a table of another format, which names the epoch that it shows.

    Store ──snapshot(epoch)──► View ──► Publisher ──one commit──► PublishedTable: Delta, Iceberg, Parquet files
                                            ▲                          │
                                            └──── PublishedEpoch ──────┘  root, view and epoch, as properties

The first publication writes all rows, batch by batch.  Each later call reads the epoch of the table, and writes the
difference between that epoch and the requested epoch.  If that epoch has expired, or the view was rebuilt, all rows
are written again.

During a run a separate process publishes, with one loop for each table:

    RunControl ──state──► Publications ──epochs──► publishing_process: PublicationLoop ──► Publisher
                               ▲                               │
                               └──────── PublicationReport ────┘

Invariants:

* A publication is one commit of the table, with its epoch.  A process that dies leaves the table as it was, or at the
  new epoch; the next publication goes on from there.  So the table equals the view at the epoch that it names.
* A commit that is not ours is noticed, and nothing is written over it.  Maintenance, which changes no row, is allowed.
* A commit succeeds only on the version of the table that was read: of two publishers one wins.
* A refusal comes before anything is written.
* A run waits for its publications only at its end, and for a stated time.  What they still have to read is pinned.
* Libraries of formats are extras, imported at the first use.

Face: `targets.Delta`, `targets.Iceberg`, `targets.ParquetFiles`, `declaration`, `start_check.check_publications`,
`publications.Publications`, `publisher.Publisher`, `publication.Publication`.
"""
