"""The history of a backfill: the rows that were ingested before the view was declared.

    view_history ──┬── all sources materialized ──→ StoredHistory: ranges of stored rows, not read yet
                   └── otherwise ─────────────────→ LedgerHistory: the files again, as the ledger has them

Both give pieces of about the wanted size, each with the position after it (`position`).  The materializer adds the
piece to the view and records the position with the view's version.

Invariants: every row up to the epoch of the history comes exactly once, in a fixed order, from any recorded position; a
file that is deleted or has changed is listed in `missing` and not guessed.

Face: `backfill_input.view_history`.
"""
