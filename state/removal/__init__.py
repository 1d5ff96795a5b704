"""The only code that deletes, overwrites, renames or moves objects.  Every call needs evidence.

Data flow:

    a committed record of ours ──► evidence (which place, which names, which version) ──► delete / overwrite / rename
                                          │ checked here
    names stay inside the place · the evidence covers every name · no link is followed · the version is the same

Invariants:

* No function deletes everything below a prefix.  A listing alone is not evidence.
* A name is relative to the place of its evidence, and has no empty part, `.` or `..`.
* On a disk every directory is opened from the one above it, without following links (`local_path`).
* A name that the evidence does not cover raises `RemovalRefusedError`, and nothing is deleted.
* A directory is removed only when it is empty.
* A user's file on a disk is deleted only under a reserved name, where no other program replaces it (`claimed_file`).
* Nothing is written below a linked directory of a place.
* `create` never overwrites.  An overwrite names the version that it replaces, or an object that this process created.

Choose the evidence (`evidence`) by the record that shows that the object is ours:

    ListedFiles       a committed record of ours lists the names: a manifest, a table's log
    ReservedNames     a directory of Slackwater's own, where only it writes names of this form: pins, commands, a cache
    UnnamedDataset    a dataset of a root that no epoch record names
    DroppedBranch     a branch whose root records that it is dropped
    FinishedFile      one version of a user's file: the user asked for it, and its rows are committed in every view
    CreatedObject     this process created the object, in this version

Face: `objects` (places of any kind, by obstore), `claimed_file` (deletions in which a process was killed),
`local_files` (one directory on a disk), `own_directory` (temporary directories of this process), `datasets` (Lance),
`tables` (Delta, Iceberg), and `evidence`.  A lint rule and `tests/test_architecture.py` forbid the functions of the
libraries elsewhere.
"""
