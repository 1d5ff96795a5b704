"""The processes of a Spark application on Ray: Java, the driver's JVM, the master, the executors.

    java             chooses a Java 17 and puts it into the environment, before Ray starts
    driver_jvm       starts the driver's JVM, beside Ray
    ray_application  start, liveness and end of all processes; app_master starts the Ray actors
    class_archive    makes later starts faster; class_path has the jars of all JVMs
    spark_log        keeps the output of the JVMs off the terminal

Invariants: a process dies with its owner; an application ends within half a minute, even frozen; no call into a JVM or
to Ray is waited for without a limit.

The room `session` uses all of it; the run and the doctor use `java`.
"""
