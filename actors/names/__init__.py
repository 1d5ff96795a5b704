"""Names: the index of the names of one source that were handed on, in one place or in shards.

    ListExecutor ──► Question ──► SeenIndex                                   the index is in the list actor
                 ──► Question ──► NameShards ──► NameExecutor × N (SeenIndex)   each has its vnodes
                                      ▲    part of a page       │
                                      └── a sight of each name ─┘
    start        ──► SeenPiece ──► NameMapping ──► SeenLoader ──► SeenIndex

A name is known by its fingerprint, 16 bytes; the first of them is its vnode.  `questions.py` has the questions that a
list step asks, each with its answer by one index and the join of the answers of several; `name_messages.py` has the
changes that it makes.

Invariants:

* An index has no state of its own: the store has its names, and the list step writes them in the epoch in which it
  hands their files on.  So a shard seals nothing, and a barrier cuts nothing in it.
* A question is answered by all shards that it concerns before the list step goes on, with the changes made before it.
* The answers of several shards are those of one index.
* Fingerprints go to the shards; names stay in the list step.

Face: `SeenIndex`, `SeenPiece` and `SeenLoader`; the questions; `NameShards`, `NameMapping` and `NameExecutor` for the
shells.
"""
