"""The tables of the store: their fields, keys and rows, and the rows as Python values.

Nothing here reads or writes a store.  Data flow of an epoch:

    put_source, head_delta, ... ──► DeltaBuilder ──► Delta ──► (a store)
    (a store) ──► rows as written ──► resolve ──► current rows ──► Catalog.of, read_epochs, read_head

Invariants:

* A row has one key in its table; a change is a put, a patch or a delete, and the later change wins.
* Keys, fingerprints and group keys are stored: their encodings never change.
* A Delta has at most one change for each key of a table.

Face: `tables` (the fields), `delta`, `keys`, `catalog`, `records`, `resolve`.
"""
