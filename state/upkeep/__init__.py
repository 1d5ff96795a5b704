"""Upkeep of a root: folds, retention, tags, pins, the quarantine, and the vacuum.

Data flow, between the epochs of the owner:

    Housekeeping.stage (in a thread) ──► StagedUpkeep ──► Housekeeping.commit ──► Housekeeping.vacuum (in a thread)
      fold_plan ──► fold                   retention ──► expired epochs             versions without a record

Invariants:

* The records stop naming a version in one commit; its files are deleted after that commit.
* An epoch with a tag or a pin does not expire; a branch is a tag of its own kind.
* A fold changes no row that `StateStore.scan` returns.

Face: `housekeeping.Housekeeping`, `retention.RetentionSettings`, `tags`, `branches`, `pin`,
`quarantine`.
"""
