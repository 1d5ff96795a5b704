"""Temporal filters: conditions on the time of the epoch, as `at > now() - INTERVAL 1 HOUR`.

temporal_conditions                        boundaries in time, which the values of rows reach
temporal_filter_cut ── temporal_filter_plan   a filter out of a query, and its plan
temporal_filter_operator                   the rows that fulfil it, and those that change as time passes
└─ temporal_filter_rows                    the same over the stored rows of any store; imports no Spark
"""
