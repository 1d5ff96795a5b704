"""The analysis of declared views: class and plan of each, or its refusal.

    ViewDefinition ── spark_analysis ──→ analysed plan ── analysis ──→ ViewPlan, or NotIncrementalError
                                              operators, aggregate_calls, full_analysis: checks
                                              inner_views: groupings within, sides of joins and rows below windows
                                                           become hidden views (computed_leaves, window_form)
                                              total_order: one answer where rows tie
    ViewPlans + catalog ── declaration ──→ new views, backfills, frozen views

`view_planner` keeps each view with its plan and the views that it reads (`planned_view`), plans a view after those, and
analyses changed views only.  `correctable` refuses views that cannot follow replaced files.

Invariants: the analysis executes no job and leaves no temporary view; a refusal names the view, the reason and the
advice in one line; equal identities mean equal computations.

To maintain a further aggregate function, add its class to `aggregate_functions`.

Face: `analysis.analyse`, `view_definition`, `view_plan`, `computed_leaves`, `declaration`, `correctable`,
`total_order`.
"""
