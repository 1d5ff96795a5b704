"""A standing corpus: small files of every kind, and what Slackwater, Spark, DuckDB and pyarrow read from them.

    CASES ──► readings.ours ──────► equal to `Case.ours`          (a fast test)
      ├─────► others.readings_of ─► recorded.json                 (`python -m tests.corpus.record`)
      └─────► format_table ───────► docs/guide/format-table.md    (`python -m tests.corpus.format_table`)

    DIRECTORY ──► __main__ ──► worker `ours`, worker `others` ──► a line a file

`python -m tests.corpus DIRECTORY` is `make corpus DIR=DIRECTORY`.
"""
