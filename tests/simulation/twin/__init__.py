"""Twin: production's store on Lance, in a directory in memory, beside the simulated one.

    SimulatedStore ──► TwinStore      each commit, fold and staged delta goes to both
    SimulatedRoot  ──► TwinRoot       so do each version of a view, and each restore, tag and vacuum
    MemoryDisk     ──► TwinDisk       a commit that one accepts and the other refuses breaks the promise `twin`
                          ├─► LanceTwin   the store: versions, heads, rows, names of commits, and the size of the tables
                          └─► ViewTwins   the datasets of views: their versions, tags and rows

Chance picks the events by the simulated store alone, so a story is the same with a twin and without, apart from folds:
the twin decides when one is due.

Invariants: both stores have the same versions at any time; a comparison changes neither of them.

Face: `TwinDisk`, `TwinRoot`.  Only stories with `on_lance` import the modules: Lance takes a second to import.
"""
