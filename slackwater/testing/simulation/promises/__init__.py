"""Promises: the checks of a simulated store at every version, against a model of the views.

    the disk, the bucket, the ledger ──► Promises (G1 to G6, order, liveness) ──► PromiseBroken
    ModelView: the rows of a view by the ledger, and the model of a backfill

Invariants: a promise is judged on the disk, not by the words of an actor; every committed version is judged once.

Face: `Promises`, `ModelView` and its kinds.
"""
