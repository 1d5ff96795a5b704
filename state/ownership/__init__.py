"""Ownership of a root, and commands to its owner, as small JSON objects in the root.

    <root>/owner.json      the process that runs on the root, renewed every few seconds
    <root>/commands/       commands of other processes, and the answers of the owner

Invariants:

* Safety rests on the head of the store alone: a wrong `owner.json` costs time, never rows.
* An owner that is not renewed for `watch_s` seconds loses the root to the next run.

Face: `owner.Ownership`, `owner.read_owner`, `command`, `command_inbox`.
"""
