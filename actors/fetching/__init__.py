"""Fetching: the step that reads files and emits their rows, once and in epochs.

    dispatcher ──► FetchExecutor ──► FileVersions ──► FileQueue ──► ReadScheduler ──► reads (shell)
                   names, changes,   the version      pending and   room, limits           │
                   barriers          to read          begun files                          │ rows
                                                                                           │
        merger ◄──┬── Emission ◄────── ReadBuffers ◄──┬── FetchExecutor ◄──────────────────┘
                  └── Replacements ◄── staged rows ◄──┘

`FetchExecutor` is the room's door: messages, `read_outcomes` and barriers come in there.  A new file passes along the
upper line; its rows come back along the lower one, through the buffers or, where a version replaces another, as staged
pieces.  Both ways end in `FileVersions.finish`, which queues the next version.

`VersionSet` remembers which ended versions never block the next one, and which cannot be read any more.
`StateChanges` gathers the changes to the tables `queue`, `ledger` and `quarantine`, and gives them away at the barrier.
`OpenEpoch` has the counts and rules from one barrier to the next.  `VnodeMoves` takes files out as a `Handover`, and in
again at another fetch actor.

Invariants:

* A file's offset moves when its rows are emitted, never when they are read.
* One version of an object is read at a time; every version ends in the ledger exactly once.
* A read has at most one answer, and a file at most one read or stage at a time.  An answer about a file that was given
  up only counts its cost.
* Rows of a version that replaces are staged, and come into the epoch of its end as one `Correction`, behind all blocks;
  no other row of its object comes in that epoch.
* Files are handed over just after a seal: the next owner knows of them exactly what the store has.
* Reads take room and limits before they start, blocks take credit and limits before they leave.

Face: `FetchExecutor`, `FileVersions`, `instructions` and `read_outcomes` for the shell; `FileProgress` and `Ending` for
recovery and retries; `VersionSet` for recovery and dry runs.
"""
