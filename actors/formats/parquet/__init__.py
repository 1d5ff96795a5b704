"""Parquet: row groups as rows, by few requests, within `ReadLimits` for hostile files.

    ObjectFile ──footer──► ParquetReader ──row groups, a few together──► decoded tables ──► conform ──► Rows
                             bounds: memory of a decode, by page headers (pages) and dictionaries (long_texts)
                             windows: a row group that is too large to be held

Invariants: row groups before the offset and unused columns are not fetched; no page is decoded before its header was
checked; the footer of a large file is one request.

Face: `ParquetReader`, through `formats.registry`.
"""
