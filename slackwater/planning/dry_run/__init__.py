"""What a run would do and cost, without running.

Data flow: `PipelineDefinition` → one listing of each source, compared with what the root knows (`SourceSurvey`) → its
first files show the schema, and a large Parquet file how many ranges it takes → `SourcePlan` → the views are analysed
over these schemas by a Spark of their own (`plan_views`) → `DryRun`.

Invariants:

* Nothing is written: neither to the root, nor to a source, nor to a queue.  The root's owner is not asked and not
  disturbed, and no term is taken.
* What counts as known is what recovery counts as known: both read it by `CommittedFiles`.
* A number that is an estimate is called one.  LIST requests are counted, as are the GETs of small files; GETs of large
  ones are estimated from one of them.
* A source that cannot be used, and a view that would be refused, are said, and the rest goes on.

    dry_run.py        DryRun, and how it is made
    source_plan.py    SourcePlan: one source
    source_survey.py  one listing of it
    get_estimate.py   how many GETs its files take
    view_plans.py     PlannedView: each view
    prices.py         Prices, and Requests, which have one
"""
