"""Definitions and plans of views: values that the analysis makes and the maintenance executes.

    view_definition                 a name with a query, or a function, as the user declares it
    columns, operators              input and result columns of a view; operators of Spark that can be maintained
    total_order                     one answer where rows tie
    view_plan ── operator_plan      the plan of a view, and of its operators, whose rows are computed in each epoch
    expiry                          retraction of rows of an internal view by watermarks
    stored_values                   the types of values that can be stored, and that can name a group
    planned_view                    a declared view with its plan and the views that it reads
    plan_text ── function_source    the identity of a view: its plan, and the code and values of a Python function
    row_conditions ── row_halves    conditions over rows, and a view in two halves by them
    view_conditions                 conditions over a view as a whole

Invariants:

* Equal identities mean equal computations.  An identity has the input of a view, its expressions and its functions, but
  not the numbers that Spark gives to columns.
* A condition has one value for a row, by that row alone; a condition that is null is not fulfilled.  Each row of a view
  is in one of its halves, as often as in the view.
"""
