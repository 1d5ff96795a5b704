"""Conditions over the rows of a view: which rows fulfil them, and a view in two halves, by whether its rows do.

    RowConditions    the conditions that each of some rows does not fulfil
    row_halves       the query, or the frame, of each half

Invariants:

* A condition has one value for a row, by that row alone; one that is null is not fulfilled.
* Each row of a view is in one of its halves, as often as in the view.
"""
