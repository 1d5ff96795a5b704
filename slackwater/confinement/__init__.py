"""Confinement: SQL that others wrote runs in worker processes, never in the process that was asked.

    front: SqlServer, Snapshot.sql, verify          worker: `python -m slackwater.confinement.child`
        │                                               │
        └── WorkerProcess ──frames on a socketpair──► child ──► `Program`: serving, query or verification
             deadline, memory, SIGKILL                  └── DuckDB without files, network or settings

Invariants:

* The front neither parses nor runs SQL. A worker gets only the environment variables that its store needs.
* Frames to the front hold JSON, messages of PostgreSQL's protocol, or Arrow IPC of bounded length, never a pickle.
  A frame that breaks the protocol ends its worker.
* A worker ends with its front: it dies with its parent, and at the end of its socket.
* A query passes DuckDB's own parser: `query_parser.QueryParser` accepts one SELECT that reads.
"""
