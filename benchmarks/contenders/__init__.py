"""Other programs over the same files, each in a process of its own.

    python -m benchmarks.contenders.NAME all DIRECTORY        takes `DIRECTORY/cold`, after `DIRECTORY/warm`
    python -m benchmarks.contenders.NAME arrivals DIRECTORY   takes files one at a time, as they come

Each prints an `Answer` as the last line: seconds until it was ready, seconds of the work, and the groups, which are
compared with those of all others.  Whatever can be warm is warm: a session, a stream that has already taken files.

    answer.py          Answer: what every contender prints
    contest.py         starts them, and compares their answers
    arrivals.py        puts files into a directory one at a time, and takes the time until each is in the result
    spark_stream.py    Spark Structured Streaming, a file stream
    spark_nexmark.py   Spark Structured Streaming, the queries of Nexmark (nexmark.py)
    spark_table.py     Spark that keeps a table, by streams and nightly (growing_view.py)
    pathway_stream.py  Pathway, out of an environment of its own: it holds other versions than ours
    duckdb_batch.py    DuckDB, one query over all files: it keeps nothing, and knows nothing of what it has read
    pyarrow_loop.py    a loop with obstore and pyarrow, the same
    batch_queries.py   Spark or DuckDB, all queries of a realistic pipeline over the files of one epoch (realistic.py)
"""
