"""Formats: the rows of one file, in file order, in the schema of its source.

    ObjectFile ──► FileReader.infer_schema ──► safe schema        (only for a source without a declared schema)
        │
        └────────► FileReader.read(schema, offset) ──► pieces: Rows of about `piece_bytes`
                      parquet, orc: row groups      │
                      avro, text: blocks            └── conform: columns, order and types of the schema

Invariants:

* For every k, the pieces from row k are exactly the rows behind the first k.
* The position of a row does not depend on the start of reading or the size of the pieces.
* A small file is one GET, for inference and reading together, and one piece.
* A fault of the file is an `UnreadableFile`, with the row if there is one; earlier pieces stay valid.  A fault of the
  store passes through unchanged.
* `ReadLimits` bound the memory and the CPU time that a file can take, whatever its bytes are.

Face: `options` (the options of a format), `reader` (the protocols), `registry` (names and readers), `limits`,
`json_layout` (for other readers of JSON).
`template` has the common steps of the readers; a format fills in how its files are opened and decoded.
`avro/`, `orc/`, `parquet/` and `text/` are the insides of the readers; `salvage` finds the bad records of a block.
"""
