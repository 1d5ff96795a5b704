"""Changes of a view between committed epochs, for readers that follow it.

    ViewChanges: epoch after epoch ──► view_difference: two versions of one dataset ──► ViewChange (removed, rows)

Invariants: removed rows first, then new rows, and the copy equals the view; the cost depends on the fragments that the
two versions do not share.

Face: `ViewChange`, through `Store.watch`.
"""
