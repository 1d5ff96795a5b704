"""Static tables: small relations that come with a pipeline.

    table_rows     a frame of any library as rows in safe types
    static_table   these rows as a file below the root, which is the one file of a source

Invariant: the file changes in one step, by compare-and-swap, and says which declared rows it had at the last start.
"""
