"""Sources: the declarations of a pipeline, as values.

    slackwater.Pipeline ──► PipelineDefinition ──► the coordinator, and through it every actor
                             └─ SourceDefinition: Location · Format · Discovery · FilePolicy · schema

Invariants:

* A definition is a frozen value; it decides nothing and asks no store.
* `SourceDefinition.to_json` holds the options that must stay equal over the life of a root, and no secret.
* The schema of a source only grows at its end.

Face: every module.
"""
