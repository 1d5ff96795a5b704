"""`slackwater serve`: a root for SQL clients, by PostgreSQL's protocol, for reading only.

    front:   socket ──► SqlServer ──► log_in ──► front.Conversation ──frames──┐
    worker:  ┌────────────────────────────────────────────────────────────────┘
             └► Session ──► statement ──► Asking ──► SessionEngine, a DuckDB for each session
                  portals, cursors,         │   ├──► the index of the keys, for look-ups
                  transactions              │   └──► CatalogDatabase, for tools
                                            └── ServedRoot: the latest epoch, and others on demand

Invariants:

* A statement sees one epoch in all its relations; a transaction sees one epoch in all its statements.
* A statement is one SELECT by DuckDB's own parser, or a known step of a session. EXPLAIN is one before such a SELECT.
* A session has a DuckDB of its own without files, network and tables, whose configuration is locked.
* The catalog for clients' tools (`pg_catalog`, `information_schema`) is a read-only DuckDB of schemas alone.
* `Session` and all below it do no I/O of sockets: messages come in, bytes go out.
* A row is sent as soon as it is computed: a result is in memory only as far as DuckDB needs it to compute it.

Face: `sql_server.SqlServer`, `worker.run`, and the rooms `log_in` for connections up to their log-in and `front`.
"""
