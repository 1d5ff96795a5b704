"""Reading: one file version, piece by piece, with all columns of its source.

    SourceReader ──open(FileVersion)──► OpenFile ──next_piece(schema, offset)──► Rows
      ObjectStore · FileReader            FileReader.read ──► FileColumns.complete

Invariants:

* A piece has exactly the columns of the source: from the content, from the path, and metadata; `_epoch` is null until
  the rows are emitted.
* One piece is read ahead, so that the last piece is known as the last.
* The costs of a file (requests, bytes) are taken once each.

Face: `SourceReader`, `OpenFile`, `FileColumns`.
"""
