"""Recovery: the beginning of an attempt, and the decision after its failure.

    AttemptPlan ──► recover(root) ──► RecoveredState ──► executors
         ▲                                                   │ failure
         └────────────────── RecoveryPolicy ◄────────────────┘

`recovery.py` takes the root over, which fences every earlier writer, and reads `committed_files.py` and the catalog.
`seen_names.py` reads the names that were handed on, one piece for each request of a list actor.
`catalog_changes.py` compares the catalog with the declaration.  A cold start is a recovery of an empty root.

Invariants: the declaration is checked before the root is taken.  Only committed state is read.  An attempt of a run
that was replaced never takes the root again.

Face: `check`, `current_head`, `recover`, `AttemptPlan`, `RecoveryPolicy`.
"""
