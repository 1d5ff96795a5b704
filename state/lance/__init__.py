"""The store, its root and the datasets of the views in Lance, on a disk or in an object store.

    <root>/state.lance                      all tables in one dataset; LanceStateStore
    <root>/views/<name>-<epoch>.lance       one dataset for each view; view_dataset
    <root>/branches/<name>/                 a root that names the files of an epoch of this one; branch_files
    <root>/after.lance                      the files that were deleted or moved after the commit; handled_files
    <root>/view_state/<name>-<epoch>.lance  partial results of a view, where they are kept apart

Data flow: rows ──► fragments (durable, not visible) ──► one Lance commit that names them.

Invariants:

* A commit never retries on a newer version: `max_retries=0` makes a conflict an error.
* The head is one row, in a fragment that has the same id for ever.
* A dataset is created by a commit that refuses an existing one.
* A store of another format is refused when it is opened.
* On a disk, the files of rows are synced before the commit that names them, and its manifest before it is acknowledged.

Face: `lance_root.LanceRoot`, `lance_store.LanceStateStore`, `view_dataset`, `dataset_files`, `lance_access`,
`fragment_stager`, `filtered_scan`, `branch_files`, `handled_files`, `row_address`.
"""
