"""The versioned store: epochs, internal tables, commits that fence, and the views' datasets.  Imports none of ours.

Data flow:

    DeltaBuilder (in every actor) ──► Delta ──► StateStore.commit ──► state.lance, one version per epoch
    view writers ──► views/<name>-<epoch>.lance, a version per changed view ──┘ (named in the epoch record)
    StateStore.scan ◄── resolve ◄── rows as written
    Root.stage: a large delta, durable before its commit, which then only names it
    FragmentStager.stage (in the fetch actors): rows of a dataset, durable before the commit that shows them

Inside a process the rows of a delta are Python's; they become Arrow when they travel or are written.

Invariants:

* One commit of `state.lance` is one epoch, take-over, fold or amendment; each swaps the one head row, in the one
  fragment that it has for ever: of two writers one is refused, whatever was vacuumed meanwhile.
* First the records stop naming a version, then its files go; by list, never by age.
* The version after version v is v + 1, and an epoch record names the version that it is itself part of.
* A view's version is committed before the epoch that names it; readers go through the epoch record.
* Epochs and terms only grow.  A process whose term is no longer the head's is fenced, for good.
* Datasets are created by a commit that refuses an existing one; `state.lance` is never restored.
* Only `clock.py` reads the clock.

Map of files:

    errors.py        the tree of errors, and what each asks of the caller
    clock.py         wall and monotonic time
    epoch.py         how epochs are made
    epoch_trace.py   where the time of an epoch went
    vnode.py         the vnode of a path
    location.py      a URL and the options that open it
    records.py       values: head, epoch record, view version, catalog entries
    tables.py        the tables and their fields
    keys.py          ordered binary keys
    fingerprint.py   short names of paths and file versions
    group_key.py     the text key of a group in a view
    delta.py         what an epoch changes, and what of it was staged
    row_selection.py which rows a scan asks for
    resolve.py       rows as written → rows as they are
    stored_rows.py   what the rows of a materialized source are called, and their lineage
    record_rows.py   head and epoch records as rows, and back
    catalog.py       pipeline, sources and views as rows, and back
    store_format.py  the format of a store, and the way from an older one
    store.py         StateStore: the contract
    head_swap.py     the commit protocol, and what an unclear answer means
    lance_store.py   StateStore on Lance
    memory_store.py  StateStore in memory
    memory_table.py  one table as an epoch in flight reads it: its own writes over committed rows
    memory_disk.py   what a root in memory keeps
    root.py          Root: the store and the views of one place, as recovery needs them
    lance_root.py    Root in Lance
    memory_root.py   Root in memory
    pin.py           readers that keep an epoch from the vacuum
    lance_access.py  opening and creating Lance datasets
    lance_layout.py  rows in the layout that Lance can read
    fragment_stager.py  rows that many write for one dataset, and another commits
    deletion_vector.py  which rows of a fragment were taken out
    storage_error.py Lance's and obstore's errors in our words
    view_dataset.py  creating, fencing and tagging the datasets of views
    object_client.py an obstore client for a location
    owner.py         owner.json: who runs on this root
    discovery_progress.py  how the files of a source are being found, as it and `list_state` say
    command.py       what can be asked of an owner
    command_inbox.py commands/: what was asked, and the answers
    fold_plan.py     which neighbours are folded into one
    fold.py          folding state.lance
    retention.py     which epochs stay readable
    tags.py          names for epochs
    quarantine.py    bad records and poison messages, and what clearing leaves of them
    vacuum.py        what no retained epoch names goes
    housekeeping.py  all of these, beside the commits of an owner
"""
