"""Lineage: events of OpenLineage about a run, its views and its publications.

    RunStatus, about once a second ──┐
    the store, at most each minute ──┴──► RunLineage ──► events ──► Emitter: an endpoint or a file

Each view is a job of its own, whose inputs are the sources and views that it reads; so is each publication.  The
pipeline is their parent.  A run of a job lasts from the first epoch with the view to the end of the run.

Invariants:

* The identifier of a run follows from the root, the run and the job: an event that is sent twice is the same event.
* The run does not wait for lineage, and does not fail with it.  Events that cannot be sent wait, up to a limit.

Face: `open_lineage.OpenLineage`, `run_lineage.RunLineage`, `emitter.Emitter`, `lineage_watch.LineageWatch`.
"""
