"""Catalyst from Python: Spark's plans and expressions over py4j, and Arrow tables in and out of Spark.

    catalyst              builds and inspects plans and expressions
    leaves                puts an epoch's rows under an analysed plan
    compiled_rows         runs projections and filters over a few rows, without planning or a job
    driver_plan           runs a physical plan over a few rows in the driver's thread, without a job
    planned_once          runs any query over one leaf, without planning: as compiled rows, or by a plan made once
    epoch_timestamps      puts the time of an epoch into a plan
    column_origin         finds the column of a leaf that a column shows unchanged
    carried_column        carries the origin or the weight of each row through a plan
    arrow_frames          converts between Arrow tables and DataFrames
    elements              reads the parts of a plan, many in one call
    java_classes          remembers what the names of Java's classes mean, and compiles those of this room

Invariants: a plan is built once per view; an epoch replaces its leaves only.  A py4j call costs 0.05 ms, so names are
looked up once.  Java objects have no Python types: `Plan`, `PhysicalPlan` and `Expression` are aliases of Any.
"""
