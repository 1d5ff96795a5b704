"""Joins: inner, outer, semi and anti, and the subqueries and set operators that become joins.

    joined_form                     brings a plan with joins into one form
    join_cut ── join_plan           a join out of a query, and its plan
    └─ time_bounds                  bounds of the difference of two times, by which the rows of a side expire
    join_operator                   the rows of a join
    ├─ joined_changes               those that change: changed rows, and their partners before and after
    └─ large_sides                  the same for many rows, which Spark's tasks read and join

Invariants: the sides of a join are internal views, stored by their join keys; two sides are paired once an epoch, for
all views that join them (`changes.sides`).
"""
