"""The materializer without Spark: models of views, and their datasets on the simulated root.

    model_view.py          ModelView           the rows of a view, by its query over the ingested rows
    model_plans.py         plan_of             the plans of such views
    model_materializer.py  ModelMaterializer   maintains them, by production's order of the work
    model_datasets.py      ModelDatasets       rows and groups; model_closing.py, windows that close
    model_leaves.py        ModelLeaves         joins and filters by the time, by the rules of production
    model_derived_view.py  ModelDerivedView    a view over another one; model_rows.py, the one dataset of a view
    model_full_view.py     ModelFullView       a view that is recomputed as a whole
    model_stored_rows.py   ModelStoredRows     the rows of a materialized source
    model_history.py       ModelHistory        the rows that were ingested before a backfill
    life_checker.py        LifeChecker         checks the states of views, against the table and the records of epochs

Invariants: a decision of production is made by production's code; a model writes what that decides.
"""
