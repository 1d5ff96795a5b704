"""The maintenance of views, one class for each kind.

    recorded_views                                    the views that each epoch creates, shows and ends
    incremental_views  append_view, aggregate_view    each epoch's rows and corrections
    backfills          backfill                       new rows, and pieces of history, until it is complete
    full_views         full_view                      recomputed from all stored rows, in a thread
    stored_sources                                    the stored rows of materialized sources
    corrections                                       old and new rows of replaced files

`recorded_views` orders the work of an epoch; by it a complete backfill becomes one of the incremental views.
`recomputation` computes a view in one query, for full views and for verification.

Invariants: a view and its recorded position change together, in one epoch; a backfill and a full view without a first
computation are recorded under a name with a dot, and hidden from readers.

The materializer uses it; `recomputation` is also used by verification.
"""
