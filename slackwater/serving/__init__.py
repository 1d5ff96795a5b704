"""`slackwater serve`: a root for SQL clients, by PostgreSQL's protocol, for reading only.

    socket ──► SqlServer ──messages──► Session ──► statement ──► ServedEpoch ──► DuckDB, or the index of the keys
                  │ TLS, password        │ portals, cursors,        ▲ relations, opened when they are named
                  │ limits, cancel       │ transactions             │
                  └──────────────────────┴── ServedRoot: the latest epoch, and others on demand

Invariants:

* A statement sees one epoch in all its relations; a transaction sees one epoch in all its statements.
* Nothing is written.  DuckDB has no file, no network and no table; its configuration is locked before the first client.
* The face of the clients' tools (`pg_catalog`, `information_schema`) is a DuckDB of its own, made of schemas alone: it
  has no rows of views.
* `Session` and all below it do no I/O of sockets: messages come in, bytes go out.  A thread runs one batch of messages;
  the event loop keeps the limits of time and of connections.
* A row leaves as soon as it is computed: a result is in memory only as far as DuckDB needs it to compute it.

Face: `sql_server.SqlServer`, `sql_server.ServingLimits`, and the room `log_in` for connections up to their log-in.
"""
