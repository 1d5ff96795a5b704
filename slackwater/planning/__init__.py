"""Plans of a run: the explanation of views and of their changes, and the dry run.  All only read.

    Pipeline.explain ──► explanation: the class, storage and cost of each view
    Pipeline.explain_change ──► definition_change: what a changed view keeps, computes and drops
    Pipeline.dry_run ──► dry_run/: the files, requests and prices of each source, and the beginning of each view
                  all ──► shown_schema: the schema by the first files of a source, as a run would take it
    slackwater init ──► samples/: the sources that suit existing files, and likely mistakes of a declaration

Invariant: nothing is written, at the root or at a source, and no ownership is taken.

Face: `explanation.explain`, `definition_change.definition_change`, `dry_run.dry_run.dry_run`,
`samples.proposal.propose`.
"""
