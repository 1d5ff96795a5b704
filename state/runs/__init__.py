"""Runs of `state.lance`: the folded rows of each table, sorted by key, with their directory; reads of a table.

    commits ──► fragments of the log: rows of all tables, as they came
    fold    ──► pieces: fragments of one table, sorted by key, each key once; neighbours in a run do not overlap
    directory: the pieces of every run, in a fragment of its own that only folds replace

    TableReader: runs, oldest first, then the log ──► ranges of keys, one after the other ──► current rows

It is the layout of a log-structured merge tree: https://github.com/facebook/rocksdb/wiki/Universal-Compaction.

Invariants:

* Of two runs of a table one has the later rows for every key; the log has later rows than every run.
* A fragment that the directory does not name belongs to the log.
* The oldest run of a table has puts only.
* A look-up of keys reads their blocks, and of the log only the rows that it has: the keys of the log are in memory.
* A fold of small commits of its own process reads none of their files.
* A read holds a few slices of the table in memory, of `SLICE_ROWS` rows, and none of the keys outside of its range.

Face: `directory`, `table_reader.TableReader`, `piece_writer.PieceWriter`.
"""
