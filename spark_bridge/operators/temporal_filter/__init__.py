"""Temporal filters: conditions on the time of the epoch, as `at > now() - INTERVAL 1 HOUR`.

temporal_conditions             boundaries in time, which the values of rows reach, of conditions on `now()`
temporal_filter_rows            the rows that fulfil them, and those that change as time passes
"""
