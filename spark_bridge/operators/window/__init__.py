"""Windows: window functions by key, and windows of time and sessions among the groups of a query.

window_form                     windows, and limits with an ORDER BY, in a total order
time_windows                    finds the windows of time in a grouping
session_windows                 makes windows by key of the sessions in a grouping
touched_rows                    the changed rows of a window: all rows of the touched keys, before and after
"""
