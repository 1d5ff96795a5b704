"""After the commit: files whose rows are committed and published are deleted, moved or tagged.

    pipeline.source(..., after=Delete | Move | Tag) ──► DeclaredAfter
    RunStatus, about once a second ──┐
    the ledger of the last epoch ────┴──► due_files ──► FileWork ──► ObjectChanges: one version of one object
                                                           │
                                                   <root>/after.lance: what was done, and up to which epoch

Invariants:

* Only a file whose ledger row says `done`, without a quarantined record, is touched; and only in the version that was
  read.  An object that has changed stays.
* Its epoch is committed for the stated time, is not held back by an expectation, and is in every table that follows a
  view of its source.
* While a view needs files of a source that keeps no rows, because it has failed or is being built, they stay.
* What is done is recorded after it is done: after a crash it is done again, which changes nothing.
* The run does not wait for it, and does not fail with it.

Face: `actions.Delete`, `actions.Move`, `actions.Tag`, `declaration.DeclaredAfter`, `file_work.FileWork`,
`due_files.due_files`.
"""
