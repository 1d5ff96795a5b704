"""Reading: a root as tables, at the latest epoch or at any retained one.  It needs no Ray, Spark or server.

    Store ──snapshot(epoch | tag | time)──► Snapshot ──view(name)──► View ──ViewReader──► Lance
      ├──► Ledger: files, sources, bad records, the history of one object ──┐
      ├──► Views: state, cost and expectations of each view ────────────────┴──► tables/, page by page
      ├──► changes/: a view that is followed from epoch to epoch
      └──► watching/: the state of the run on the root, from look to look

Invariants:

* A reader goes through the record of an epoch, so it sees ledger and views of one moment.
* A call reads what it shows: the record of its epoch, a page, the rows of one object.  Only a table of files that is
  asked for as a whole reads the ledger, slice by slice.
* Nothing here writes, and nothing keeps an epoch from expiring but a pin that a caller asks for.
* A text that comes from a file or a store is data: terminal and page escape it.

Face: `store.Store` with its `ledger.Ledger` and `views.Views`, `snapshot.Snapshot`, `view.View`, and the values that
they return.
"""
