"""From a query or a function to a plan: the class and the plan of a declared view, or its refusal.

    ViewDefinition ── spark_analysis ──→ analysed plan ── analysis ──→ ViewPlan, or NotIncrementalError
                                              full_analysis: checks of full views
                                              inner_views: aggregations within and the rows below operators become
                                                           internal views; each operator cuts itself out

`view_planner` keeps each view with its plan and the views that it reads, plans a view after those, and analyses changed
views only.  `correctable` refuses views that cannot follow replaced files.  `removal` says how rows leave a view.

Invariants: the analysis executes no job and leaves no temporary view; a refusal names the view, the reason and the
advice in one line.
"""
