"""The fast start of Spark on Ray: uses of private parts of RayDP, pyspark and Java, behind one switch.

    early_driver     starts the driver's JVM while Ray starts, with RayDP's master in it
    app_master       RayDP's master in the driver's JVM
    class_archive    an archive of Spark's classes, which makes later starts faster

`spark_bridge.engine.application.raydp_start` has the plain start.  `actors.fast_start` is the same room for Ray.

Invariant: only `session` imports this room; with `SparkSettings(fast_start=False)`, or an untested version of Ray,
RayDP or Spark, none of its modules is loaded.
"""
