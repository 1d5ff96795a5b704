"""The maintenance of views, one class for each kind, and the life of a view: declared, backfilled, shown, dropped.

    declaration                                       declared views + catalog -> the start of each view
    view_life                                         the state of each view, and the allowed transitions
    recorded_views                                    the views that each epoch creates, shows and ends
    incremental_views  append_view, row_view          each epoch's rows and corrections
                       expiring_rows                  rows that leave by watermarks: sides of joins, time to live
    backfill           parents_backfill               a view that lacks earlier rows, its beginning and its progress
    backfills                                         new rows, and pieces of history, until a view is complete
    derived_views      derived_rows, parent_rows      the changes of other views, through the operators
                       weighted_rows                  a projection view over operators: rows by their values
    full_views         full_view                      recomputed from all stored rows, in a thread
    shared_views                                      internal views with the same rows, maintained once
    stored_sources                                    the stored rows of materialized sources
    row_view                                          the dataset and the query of projection views

Data flow in an epoch:

    new rows, corrections ──► incremental views ── changes ──► derived views, the parents first ──► versions

`recorded_views` orders the work of an epoch; by it a complete backfill becomes one of the incremental views.  A view
whose groups are those of the stored view that it replaces begins with them, in the first epoch, by its `AggregateView`
(room `operators.group`); only measures that these lack get earlier rows.  `recomputation` computes a view in one query,
for full views and for verification.

Invariants: a view and its recorded position change together, in one epoch; a backfill, and a full or derived view
without a first computation, are recorded under a name with a dot, and hidden from readers.  A view gets the changes of
an epoch once, after all of its parents.  An error in the work on one view is a `ViewFailedError`: the view and its
readers keep the versions of the epoch before.  Work in the thread of the caller has a `Guard`.

The materializer uses it; `recomputation` is also used by verification.
"""
