"""Catalyst from Python: Spark's plans and expressions over py4j, and Arrow tables in and out of Spark.

`Catalyst` in `catalyst` is the interface; its parts are

    scala                 Scala's collections and objects
    trees                 reads and rebuilds plans and expressions of any kind
    schemas               types and schemas
    expressions           builds expressions over the columns of a row
    functions             builds calls over several rows: aggregates, windows
    logical_plans         builds operators; leaf_plans builds leaves
    queries               parses, analyses and optimizes queries
    physical_plans        makes and runs physical plans

Code that needs one part receives this part alone, so that its signature shows its dependencies.  A version of Spark
with other constructors needs other classes of the parts that call them; `Catalyst` chooses them.

Other modules:

    epoch_timestamps      puts the time of an epoch into a plan
    current_rows          the last row of each key of a source with a key
    column_origin         finds the column of a leaf that a column shows unchanged
    carried_column        carries the origin or the weight of each row through a plan
    arrow_frames          converts between Arrow tables and DataFrames
    elements              reads the parts of a plan, many in one call
    java_classes          stores what the names of Java's classes mean, and compiles those of this package

Invariants: a plan is built once per view; an epoch replaces its leaves only.  A py4j call costs 0.05 ms, so names are
looked up once.  Java objects have no Python types: `Plan`, `PhysicalPlan` and `Expression` are aliases of Any.
"""
