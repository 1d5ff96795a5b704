"""The versioned store: epochs, internal tables, commits that fence, and the views' datasets.  Imports none of ours.

Data flow:

    DeltaBuilder (in every actor) ──► Delta ──► StateStore.commit ──► state.lance, one version per epoch
    view writers ──► views/<name>-<epoch>.lance, a version per changed view ──┘ (named in the epoch record)
    StateStore.scan ◄── resolve ◄── rows as written

Invariants:

* One commit of `state.lance` is one epoch or one take-over; it swaps the one head row: of two writers one is refused.
* The version after version v is v + 1, and an epoch record names the version that it is itself part of.
* A view's version is committed before the epoch that names it; readers go through the epoch record.
* Epochs and terms only grow.  A process whose term is no longer the head's is fenced, for good.
* Datasets are created by a commit that refuses an existing one; `state.lance` is never restored.
* Only `clock.py` reads the clock.

Map of files:

    errors.py        the tree of errors, and what each asks of the caller
    clock.py         wall and monotonic time
    epoch.py         how epochs are made
    vnode.py         the vnode of a path
    location.py      a URL and the options that open it
    records.py       values: head, epoch record, view version, catalog entries
    tables.py        the tables and their fields
    keys.py          ordered binary keys
    fingerprint.py   short names of paths and file versions
    group_key.py     the text key of a group in a view
    delta.py         what an epoch changes
    resolve.py       rows as written → rows as they are
    record_rows.py   head and epoch records as rows, and back
    catalog.py       pipeline, sources and views as rows, and back
    store.py         StateStore: the contract
    head_swap.py     the commit protocol, and what an unclear answer means
    lance_store.py   StateStore on Lance
    memory_store.py  StateStore in memory
    lance_access.py  opening and creating Lance datasets
    storage_error.py Lance's and obstore's errors in our words
    view_dataset.py  creating, fencing and tagging the datasets of views
    object_client.py an obstore client for a location
    owner.py         owner.json: who runs on this root
"""
