"""Schemas: Arrow types that survive the ingest into Spark, and rows in them.

    DDL text ──ddl──► pa.Schema            schemas of files ──merged_schema──► pa.Schema
    names of a file ──column_names──► names in the source
    rows of a file ──conform──► rows with the columns, order and types of the source

Invariants:

* A row never leaves its reader with a type that Spark would corrupt in silence; see `safe_types`.
* A value is converted only into a type that holds it exactly; anything else is an `UnreadableFile` that names the
  column, both types and the row.
* At most one column of a file is read as a column of the source.

Face: every module.  `metadata_columns` and `path_columns` make the columns that the content of a file does not have.
"""
