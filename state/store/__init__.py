"""The contracts of a store and of its root, and the commit protocol that every store shares.

`StateStore` and `Root` are protocols; `state.lance` implements them, and for tests `tests/simulation/memory` does.
A commit:

    stage rows and head (durable, not visible) ──► swap the head (compare-and-swap) ──► done | refused | unknown
    unknown ──► reopen, and compare the name of the transaction ──► done | refused

Invariants:

* A swap is accepted only on the version that its handle sees; the new version is that version + 1.
* A handle whose commit was refused accepts no other commit.

Face: `store.StateStore`, `root.Root`.  Only implementations import `head_swap`.
"""
