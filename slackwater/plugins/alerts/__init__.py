"""Alerts: a notice when a state of a pipeline begins, and one when it ends.

    RunStatus, about once a second ─┐
    the ledger, after each epoch ───┴─► Condition ──► AlertStates ──► Delivery: a webhook, a command or the log
                                                          │
                                                    <root>/alerts.json

Invariants:

* A begin and an end are each reported once, also across restarts: `alerts.json` has the states and the notices that
  are not delivered.  It is written before a notice is sent, so a process that is killed in between sends it again.
* A condition about a run is not judged while the run starts or recovers: its states stay.
* The run does not wait for alerts, and does not fail with them.

Face: `alert.Alert`, `alert_watch.AlertWatch`, `alert_states.read_states`.
"""
