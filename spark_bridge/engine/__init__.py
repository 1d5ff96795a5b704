"""Spark as an engine: its processes on Ray, its session, and its plans and expressions from Python.

    application   the processes of a Spark application on Ray
    fast_start    a start that uses private parts of RayDP, pyspark and Java
    session       the SparkSession, and jobs that always end
    catalyst      plans, expressions and physical plans over py4j
    execution     analysed plans over an epoch's rows, without planning

Invariant: this package depends on no room of views; they depend on it.
"""
