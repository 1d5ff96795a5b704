"""The Lance datasets of views, of their partials, and of stored rows.

    rows of a result ── result_rows ──→ view_table ── dataset_writer ── one commit ──→ version
    staged fragments ── stored_rows ──→ view_table
    deleted rows ────── row_deletions ─→ dataset_writer
    commits of an epoch ── later_commits   during the work on other views
    keys ────────────── look_ups ─────→ rows, by an index; of a small dataset in memory: small_rows
    indexes, fragments ── dataset_upkeep   bounded tasks; index_audit checks the indexes
    dataset_paths       where the datasets of a view are

Invariants: one writer; each commit makes exactly the next version, without a retry; a path is never used twice; readers
see a version after an epoch record names it; `tidy` does small tasks only, between two epochs; on a disk, the files of
a version are synced when the call that makes it returns, or, of the views of an epoch, when the epoch's work ends.

The rooms `changes`, `operators.group` and `maintenance` use it.
"""
