"""The versioned store: epochs, internal tables, commits that fence, and the datasets of the views.

Imports no other package of the project.  Data flow:

    DeltaBuilder (in every actor) ──► Delta ──► StateStore.commit ──► state.lance, one version per epoch
    view writers ──► views/<name>-<epoch>.lance, a version per changed view ──┘ (named in the epoch record)
    StateStore.scan ◄── resolve ◄── rows as written
    Root.stage: a large delta, durable before its commit, which then only names it
    FragmentStager.stage (in the fetch actors): rows of a dataset, durable before the commit that shows them

The rows of a delta are Python objects inside a process, and Arrow when they travel or are written.

Invariants:

* One commit of `state.lance` is one epoch, take-over, fold or amendment.  Each swaps the one head row, always in the
  same fragment: of two writers one is refused, also after a vacuum.
* First the records stop naming a version, then its files are deleted; by list, never by age.
* The version after version v is v + 1, and an epoch record names the version that it is itself part of.
* A view's version is committed before the epoch that names it; readers start from the epoch record.
* On a local disk a commit is acknowledged when its files are synced, rows before the manifest that names them.
* Epochs and terms only grow.  A process whose term is older than the head's is fenced for good.
* A dataset is created by a commit that refuses an existing one; `state.lance` is never restored to an older version.
* Only `clock.py` reads the clock.

Rooms, from the top down; a room imports only rooms below it:

    lance/       the store, the root and the datasets of views in Lance
    ownership/   owner.json, and commands to the owner of a root
    capabilities/  the abilities that a store must have, probed when a root is created
    upkeep/      folds, retention, tags, branches, pins, quarantine, vacuum
    runs/        the folded rows of each table, sorted by key, and reads of a table
    store/       StateStore and Root: the contracts; the commit protocol
    tables/      the tables, their keys, deltas, and rows as Python values
    places/      the identity of a location, by which overlaps are found
    removal/     the only code that deletes or overwrites objects, each with evidence
    equality/    which rows and values are the same: texts, numbers and comparisons
    objects/     clients of object stores, and their errors

    location.py  a URL and the options to reach it
    private_directory.py  directories that no other user of the machine can enter or replace
    vnode.py     the vnode of a path
    epoch.py     the encoding of epochs
    allocation.py  the memory of a process that owns a store
    clock.py     wall and monotonic time
    errors.py    the tree of errors: each class says what the caller does
    visible.py   text of any origin without control characters
"""
