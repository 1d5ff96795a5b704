"""A standing corpus: small files of every kind, and what Slackwater, Spark, DuckDB and pyarrow read from them.

cases.CASES ──► readings.ours ───────► equal to `Case.ours`        (a fast test)
    │      └──► others: DuckDB, pyarrow, Spark ──► recorded.json   (`python -m tests.corpus.record`)

    DIRECTORY ──► __main__ ──► worker `ours`, worker `others` ──► a line a file   (`python -m tests.corpus DIRECTORY`)
"""
