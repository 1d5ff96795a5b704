"""The identity of a view: a text that is equal for views that compute the same, and stable from start to start.

`plan_text` makes it of a plan, `function_source` of what a Python function can see.

Invariants: the numbers that Spark gives to columns are not in it; what a view reads, computes and calls is.

The room `analysis` alone uses it.
"""
