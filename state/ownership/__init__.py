"""Ownership of a root, and commands to its owner, as small JSON objects in the root.

    <root>/owner.json        the process that runs on the root, renewed every few seconds
    <root>/owner.json.lock   on a disk: processes take turns with owner.json
    <root>/commands/         commands of other processes, and the answers of the owner

Invariants:

* Safety rests on the head of the store alone: a wrong `owner.json` costs time, never rows.
* An owner that is not renewed for `watch_s` seconds loses the root to the next run.  A torn `owner.json` counts as
  a silent owner.
* Of several processes that start at once, exactly one becomes the owner: `owner.json` is replaced only while it is the
  one that was read.
* A process counts as dead only if it ran since this boot of this machine and in this PID namespace.

Face: `owner.Ownership`, `owner.read_owner`, `process_identity`, `command`, `command_inbox`.
"""
