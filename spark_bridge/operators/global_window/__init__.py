"""Queries over all rows at once: windows without `PARTITION BY`, long limits, `OFFSET`.

all_rows_cut ── global_window_plan   such an operator out of a query, and its plan
global_window_operator               computes the query before and after an epoch, and compares both results
"""
