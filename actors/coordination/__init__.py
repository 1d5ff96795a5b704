"""Coordination: one executor makes the epochs of an attempt, and commits them in order.

    progress, reports ──► barrier_scheduler   the time of the next barrier, and its load
                          epoch_collector     the epochs in flight ──► epoch_commits ──► Commit
                          epoch_deadline      no progress ──► Fail

`coordinate_executor.py` joins the parts; each decides one thing and knows nothing of the others:

* `company.py`: the sources whose files probably come within a moment, so that a barrier waits for them.
* `watermarks.py`: the event time up to which everything has come, by the marks of the listings.
* `schema_decisions.py`: the schemas of sources, by their first files; `caught_up.py`: the marks that are reached.
* `admission.py`: the files that may be read after an epoch that killed.
* `autoscaler.py` decides the number of fetch actors, `rescaling.py` moves the vnodes to them.
* `requests.py`: the mutations of the user; `published_state.py`: the `RunState` that the user sees.
* `ledger_corrections.py`: the ledger's part of a correction, computed by the shell at the commit.

Invariants: at most `max_in_flight` epochs are in flight; one commit is under way; an epoch without a change commits
nothing.  A report that is not expected is a `ProtocolError`.

Face: `CoordinateExecutor` and `instructions.py`, for the shells.
"""
