"""Dry run: the work and the cost of a run, without a run.

    PipelineDefinition ──► SourceSurvey: one listing of each source, compared with the root ──► SourcePlan ──┐
                           the first files give the schema, a large Parquet file its number of ranges        ├──► DryRun
                           plan_after: the files that it would delete, move or tag ──► AfterPlan ──────────┤
                           plan_views: the views, analysed over these schemas by Spark ──► PlannedView ──────┘

Invariants:

* Nothing is written: not to the root, a source or a queue.  The owner of the root is not disturbed, and no term is
  taken.
* A file counts as known exactly if recovery counts it as known: both read it by `CommittedFiles`.
* An estimate is called an estimate.  LIST requests and the GETs of small files are counted; the GETs of large files are
  estimated from one of them.
* A source that cannot be used, or a view that would be refused, is reported, and the others are still planned.

Face: `dry_run.dry_run`, `dry_run.DryRun`, `prices.Prices`.
"""
