"""The processes of a Spark application on Ray: Java, the driver's JVM with the master, the executors.

    java             chooses a Java 17 and puts it into the environment, before Ray starts
    driver_jvm       starts and ends the driver's JVM; class_path has the jars of all JVMs
    authentication   the secret that these processes share
    ray_application  start, liveness and end of all processes
    session_start    the interface of a start; raydp_start is the plain start, `fast_start` the room of the fast one
    spark_log        keeps the output of the JVMs off the terminal, in a private directory

Invariants: a process dies with its owner; an application ends within half a minute, even frozen; no call into a JVM or
to Ray is waited for without a limit; no other user of the machine can change a file that a JVM runs or writes.

The room `session` uses all of it; the run and the doctor use `java`.
"""
