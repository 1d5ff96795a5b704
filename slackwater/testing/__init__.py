"""Testing kit: real servers for tests and for the demo, and faults in front of them.

    servers/  S3Server, SqsServer (GuardedServer) ──► GuardedProcess ──► process_guard.py ──► the server's program
              RayCluster ── for each RayNode ──► GuardedProcess ──► ray start
    proxies/  RequestLog: a reverse proxy that records each request
              FaultProxy: a proxy that refuses, cuts, resets, delays or freezes requests

Invariants:

* Servers listen on loopback only, on free ports, with credentials made for one server.
* A server and its files end with the process that started it, however that ends.

Face: every class above.
"""
