"""Listing: the list step of one source.  It finds new, changed and missing files.

    ReadPage ──► ListingPage ──► PageLookUp ───┬──► UnsentFiles ──budget of the barrier──► NewFiles
    LookAt   ──► FileVersion ──► EventLookUp ──┤
                                 Names         ├──► ChangedFiles
                                               └──► MissingNames ──RemovalGuard──FindDeleted──► DeletedFiles
                 SkippedNames ──WarnOf──► log
    barrier  ──► EpochWriter ──► rows of `seen`, `quarantine`, `list_state`

`ListExecutor` joins them, and `StepQueue` runs its steps, which ask questions about names (`actors/names`), one after
the other.  `ListingPace` with `RequestBudget` says when to list; `SettlingFiles`, which local files may still be
written; `ListingMarks`, until which time everything is handed on; `VanishedNames`, which names are new again;
`ListingDigests`, which parts of a page need no look-up; `RemovalGuard`, whether missing files may leave the views.
`ForeignTables` (`actors/sources`) pauses the source at a table, and `Refusals` (`actors/sources`) while its store or
queue refuses requests.

Invariants:

* `seen` decides which files are new; there is no cursor.
* A name is marked as seen in the epoch in which its file is handed on.
* No more files are handed on in an epoch than its barrier allows.
* A step is over, with all answers about names, before the next one begins.
* If a page and a look contradict each other, the step looks again.
* A name is missing when two complete listings in a row, or a look, do not show it.
* A `DeletedFile` is sent when the store has the version as finished, and removals are not paused.
* A version that vanished unread is read when it is listed again.  Its name is forgotten, or stays if rows of an earlier
  version may have to be retracted with the object.
* Nothing of a pause is stored: listings find it again, and `list_state` says that a restart must list.

Face: `ListExecutor` and its arguments, `instructions`, `find_deleted` with `DeletedFound`; for recovery `ListedState`.
"""
