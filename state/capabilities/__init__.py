"""Capabilities of an object store or a file system that a root and published tables rely on.

    probe(location) ──► Probed ──► require_capable ──► <root>/store.json     once, when a root is created
                          └──► `slackwater doctor`, and published tables when they are created

Commits, ownership and pins rest on conditional writes; Lance reads parts of objects, and finds its latest version by a
listing.  Some servers accept these requests and ignore the condition or the range: every writer then wins, without an
error.  So the store is probed once, with separate objects.

Invariants:

* A root has one identity for life, in `store.json`, which is never replaced.
* A new root on a store without a capability is refused before anything else is written.  The objects and directories
  of the probe are deleted.
* An existing root is never refused: the result is recorded, and every start warns.
* A capability counts as missing only if the store violates it.  A store that does not answer, or denies access, raises
  the usual error.

Face: `probe.probe`, `store_record.require_capable`, `store_record.record_branch`, `store_record.read_record`,
`store_record.root_identity`.
"""
