"""Telemetry: logs, metrics, and text that a terminal can show.

`logging.py` configures structlog for the process and its children; `metrics.py` lists every metric with unit and
labels; `text.py` makes one line of an error.

Invariants: no secret reaches a log.  The number of series of a metric does not depend on the data.

Face: everything.
"""
