"""Windows: window functions by key, and windows of time and sessions among the groups of a query.

window_form                     neighbouring windows over the same keys, in a total order
window_cut ── window_plan       these out of a query, and their plan; without a key they go to `global_window`
window_operator                 the changed rows of a window: all rows of the touched keys, before and after
time_windows                    finds the windows of time in an aggregation
session_windows                 makes windows by key of the sessions in an aggregation
"""
