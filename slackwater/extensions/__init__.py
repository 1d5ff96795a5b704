"""The interfaces between the core and the optional features: alerts, lineage, publications, actions on files.

    Pipeline(alerts=[sw.Alert(...)]) ─────────────────► RunOption ───────────► Companion
    source(after=sw.Delete(...)) ──► FileAction ──────► DeclaredFileAction ──► Companion, AfterPlan
    view(publish=sw.Delta(...)) ───► TableTarget ─────► TablePublication ────► Follower, PublicationPlan

A user gives a pipeline the options of a feature.  An option checks itself, names its places, plans its part of a dry
run, and makes the object that accompanies a run.  So the core imports no feature.  An option is a small value;
`entry.load` loads the feature behind it when a run needs it.

Invariants:

* An option of a feature reaches the core only through an argument of `Pipeline`, `source` or `view`.
* One companion or follower serves all options of one class.
* A companion does not delay an epoch, and its failure does not end the run.

Face: `companion.RunOption`, `companion.Companion`, `file_action.FileAction`, `table_target.TableTarget`,
`run_views.RunViews`.
"""
