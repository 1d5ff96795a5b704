"""Telemetry: logs, metrics, and text that a terminal can show.

`logging.py` configures structlog for the process and its children; `metrics.py` defines a metric with unit and labels;
`counted.py` describes a counter of the status; `text.py` makes one line of an error.

Invariants: no secret reaches a log.  The number of series of a metric does not depend on the data.

Face: everything.
"""
