"""A run of a pipeline in this process: it starts Ray and Spark, runs attempts, and recovers from failures.

Data flow: `Pipeline.start` → `RunControl`, a thread that runs one `Attempt` after the other → an attempt has a
coordinator with its actors on Ray, and the `MaterializerLoop`, which takes epochs to the views on Spark in a
`LoopThread` → states of the attempt become `RunStatus`, events and metrics.  Requests of the user and commands reach
the attempt through `RunRequests`, as mutations of barriers.

    run.py                Run, the public handle
    run_control.py        the control thread: attempts, and recovery between them
    attempt.py            one attempt
    materializer_loop.py  the loop that takes epochs and backfills to Spark
    loop_thread.py        a thread for the turns of a loop
    spark_application.py  the Spark application, replaced when it is lost
    requests.py           pause, throttle, rescale, retry and stop; they outlive attempts
    declared_views.py     the views, with those that are added and dropped; they outlive attempts, too
    corrections.py        forget and reingest, of the files that source_objects.py finds
    companion_loop.py     the loop of one companion, such as alerts; `extensions` has the interface
    command_loop.py       the loop that carries out commands; commanded_run.py, the run as they see it
    progress.py           counts over all attempts; flow_meter.py, rates and queues
    run_events.py         events for programs
    foreground.py         a run that its process waits for, and signals
    shipped_code.py       the code that workers of a cluster import

Invariants:

* A loop has no thread, and no turn waits for Spark or for a schema: the simulator runs the materializer's loop.
* At most one attempt lives; an earlier attempt cannot write into a later attempt.
* A pause, a throttle, the number of fetch actors, and added and dropped views stay in force in the next attempt.
* The run is over only when all that it started has ended.
"""
