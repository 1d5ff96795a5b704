"""Queries over all rows at once: windows without `PARTITION BY`, long limits, `OFFSET`.

`global_window_rows` computes the query before and after an epoch, and compares both results.
"""
