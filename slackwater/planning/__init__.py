"""Plans of a run: the explanation of views, and the dry run.  Both only read.

    Pipeline.explain ──► explanation: the class, storage and cost of each view
    Pipeline.dry_run ──► dry_run/: the files, requests and prices of each source, and the beginning of each view
                 both ──► shown_schema: the schema by the first files of a source, as a run would take it

Invariant: nothing is written, at the root or at a source, and no ownership is taken.

Face: `explanation.explain`, `dry_run.dry_run.dry_run`.
"""
