"""After the commit: files whose rows are committed and published are deleted, moved or tagged.

    pipeline.source(..., after=Delete | Move | Tag) ──► DeclaredAfter
    the run's views and publications ──► RunViews ─┐
    RunStatus, about once a second ────────────────┤
    the committed catalog, branches, the clock ────┴──► reach: up to which epoch
    the ledger ──► due_files ──► FileWork ──► ObjectChanges: one version of one object
                                    │
                            <root>/after.lance: each handled file, the last epoch, and times of commits

Invariants:

* A file is touched only if its ledger row says `done`, without a quarantined record, in the version that was read.
* The committed catalog has every view that the run declares, by its identity, with all rows of the file.  Or the
  stored rows of the source have the rows of the file.  Before the views are analysed, no file is touched.  `RunViews`
  excludes deletions while a change of the declaration is accepted.
* Every publication of a view of the source has its epoch; a publication that has not reported keeps all files.
* The stated time has passed since the commit, since the modification of the file, and since the wall clock was set.
* No branch of the root still has to read it.
* A deletion, move or tag is recorded after it has happened: a crash in between repeats it, which changes nothing.
* The run does not wait for the work on files, and does not fail with it.

Face: `actions.Delete`, `actions.Move`, `actions.Tag`, `declaration.DeclaredAfter`, `file_work.FileWork`,
`reach.reach`, `due_files.due_files`, `after_plan.plan_after`.
"""
