"""Watching: the state of a root and of the run on it, from any machine, by reading alone.

    owner.json ──OwnerWatch──► OwnerLife ─┐
    the store ──stored_status─────────────┴─RootWatcher──► RootLook (for the terminal and the page)

Invariants: nothing is written; the silence of an owner is measured by the clock of the watching machine.

Face: `RootWatcher`, `OwnerWatch`.
"""
