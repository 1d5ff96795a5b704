"""The ingest of rows to Spark: blocks in Ray's object store, Lance datasets, and the history of a backfill.

    blocks ───────── row_ingest, blocks ──→ EpochRows: one DataFrame per source, for all views
    HistoryPiece ─── row_ingest ──────────→ EpochRows, with the time of its epoch; stored rows by dataset_frame
    dataset ──────── dataset_frame ──────────→ a DataFrame
    late rows ────── followed_watermarks ────→ LateRows, by the watermarks that the rows of a view follow
    LateRows ─────── late_rows ──────────────→ rows of the quarantine

`EpochViews` is the answer of the materializer: the versions of all views.

Invariants: rows reach Spark's tasks without pandas and without the driver; the caller holds the references; a lost
block is an error within a minute, not a wait.

Face: `epoch_rows`, `history`.
"""
