"""Commands: requests from any process to the run that owns a root, and their execution without a run.

Data flow: `ask` writes a `Command` to the inbox of the root (`state/ownership/command_inbox.py`) → the `CommandLoop` of
the run carries it out and writes the `Answer` → `ask` returns it.  Without an owner, `ask` takes the root itself, and
carries out the commands that need no run.

    operations.py   the operations of a run; each is one class with its arguments, its work and its answer
    ask.py          sends a command, and waits for the answer
    maintenance.py  work on a root as its owner, without a run
    named_files.py  the files that a user names
    attempt_views.py  the views of an attempt, and the commands that change them
    retry.py        the quarantined files that may be read again

Invariants:

* A command is data of a known kind, and changes a root only through its owner.
* A command names its run: a later run never carries it out.
* Wire format: kinds, arguments and the fields of answers stay.

`Pause`, `Resume` and `Throttle` are commands too: mutations of a barrier (`actors/protocol/barrier.py`).  A new
operation is one class in `operations.py`, for example `ReleaseCommand`; its CLI command follows from its `line`.
"""
