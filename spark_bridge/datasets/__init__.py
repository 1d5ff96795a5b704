"""The Lance datasets of views, of their partials, and of stored rows.

    rows of a result ── result_rows ──→ view_table ── one commit ──→ version
    staged fragments ── stored_rows ──→ view_table
    deleted rows ────── row_deletions ─→ view_table
    commits of an epoch ── later_commits   beside the work on other views
    a small dataset ─── small_rows ───→ view_table: in memory, looked up there

Invariants: one writer; each commit makes exactly the next version, without a retry; a path is never used twice; readers
see a version after an epoch record names it; `tidy` does small tasks only, between two epochs; on a disk, the files of
a version are synced when the call that makes it returns, or, of the views of an epoch, when the epoch's work ends.

The rooms `changes`, `operators.group` and `maintenance` use it.
"""
