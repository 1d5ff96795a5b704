"""Ray: the runtime of the shells, the actors of a run, and the client of the process that runs a pipeline.

    run_client.py         RunClient            starts the coordinator and talks to it
    ray_session.py        connect_ray, ...     the connection of this process to Ray, plain or by `actors.fast_start`
    start_attempts.py     start_with_patience  attempts to start a Ray on this machine
    coordinator.py        Coordinator          ┐
    list_actor.py         ListActor            │
    name_actor.py         NameActor            │ the shells of `actors.shells` as Ray actors, each with its
    exchange_actors.py    DispatcherActor, ... │ collaborators
    fetch_actor.py        FetchActor           ┘
    ray_actors.py         RayActors            makes the actors of one attempt, on their nodes
    hosted_shells.py      HostedShell          the dispatcher and the merger in the process of the coordinator
    ray_runtime.py        RayRuntime           calls, timers and threads of a shell
    actor_death.py        death_of             the death of an actor, and whether its node is lost
    ray_blocks.py         RayBlocks            rows in Ray's object store, and in the datasets of stored rows
    row_stager.py         RowStager            rows of a materialized source, each with its file, into a dataset
    event_source.py       EventSource          a queue of events, asked in threads
    lazy_root.py          lazy_root            the root on Lance, loaded when it is needed
    awaited_epoch.py      AwaitedEpoch         the wait of the materializer's loop for an epoch
    metric_exporter.py    MetricExporter       metrics at Ray's Prometheus endpoint

Invariants:

* Ray and asyncio are imported in this room and in `actors.fast_start` alone.
* Ray handles belong to one attempt; a typed reference (`Actor[Shell]`) is such a handle.
* An actor loads neither Lance nor the code of other steps at its start.

Face: `run_client`, `ray_session` and `metric_exporter`.
"""
