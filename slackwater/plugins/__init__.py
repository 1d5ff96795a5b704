"""Optional features of a pipeline, each in a room of its own.  The core works without them, and imports none.

    after_commit/  files are deleted, moved or tagged when their rows are committed
    alerts/        notices when a state of a run begins and ends
    demo/          `slackwater demo`
    doctor/        `slackwater doctor`: checks of a machine, a store and a pipeline
    lineage/       events of OpenLineage about runs, views and publications
    publish/       a view as a Delta or Iceberg table, or as Parquet files: once, or during a run
    serve/         `slackwater serve`: SQL over the views for clients of PostgreSQL
    ui/            `slackwater ui`: a web page about a root

A plugin reaches a run as an option that a user gives to `Pipeline`, `source` or `view`; `slackwater.extensions` has the
interfaces.  The other plugins are commands, or functions over a `Store`.

Invariants:

* No plugin imports a plugin.
* Of the core, only the command line imports plugins.
"""
