"""Limits: the first rows in an order.

    limit_form                      limits and offsets over sorted rows, in a total order
    limit_cut ── limit_plan         a limit out of a query, and its plan; a long one goes to `global_window`
    limit_operator ── first_rows    the first rows and some spare rows, kept between epochs

The rows below are read again when too many of the cached rows are retracted.
"""
