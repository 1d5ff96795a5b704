"""From a query or a function to a plan: the class and the plan of a declared view, or its refusal.

    ViewDefinition ── spark_analysis ──→ analysed plan ── analysis ──→ ViewPlan, or NotIncrementalError

The passes of `analysis`, in their order:

    plain_plan       names of relations and of leaves
    row_expiry       the expiry of rows by a watermark or a time to live
    inner_views      aggregations within, and rows below operators, become internal views: each operator cuts itself out
    classification   the class of the view and of each internal view
    closing          the windows of emit="on_close"
    full_analysis    checks of full views

`view_planner` keeps each view with its plan and the views that it reads, plans a view after those, and analyses changed
views only.  `correctable` refuses views that cannot follow replaced files.  `removal` says how rows leave a view.

Invariants: the analysis executes no job and leaves no temporary view; a refusal names the view, the reason and the
advice in one line.
"""
