"""The execution of analysed plans over an epoch's rows, without planning and, for few rows, without a job.

    leaves          the rows of the leaves of a plan: few in this process, or as Spark's tasks read them
    planned_once    runs a query over rows of its leaves by a physical plan that is made once
    frame_queries   runs queries of DataFrames over rows of any number, each planned once for the columns of the rows
    task_rows       rows as Spark's tasks read them, without a DataFrame
    driver_plan     runs a physical plan over a few rows in the driver's thread, in one call into the JVM

`PlannedOnce(catalyst, plan, leaves)` is the interface: `table(rows, schema, tasks)` gives the result in this process,
and `rows(rows, tasks)` gives it as rows of another plan.  `TableQuery(catalyst, plan)` is the same for one leaf whose
rows are a table.

Invariants: the result is the same for few and for many rows; an epoch replaces the leaves of a physical plan only.
"""
