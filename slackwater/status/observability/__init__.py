"""Metrics and traces of a run, for Prometheus and OpenTelemetry.

    RunControl ──► RunObserver ──┬── each committed epoch, once ──────► RunMetrics.on_epoch, EpochSpans.on_epoch
                                 └── RunStatus, while it changes ──► RunMetrics.on_status

    RunMetrics ──► MetricExporter: Ray's metrics, scraped by Prometheus (dashboard.json is a Grafana dashboard of them)
    EpochSpans ──► the TracerProvider of the program

Invariants:

* Observation changes nothing: an error here is logged once, and the run continues.
* Only `actors/telemetry/metrics.py` names metrics; `actors/hosting/metric_exporter.py` exports them to Ray.
* A counter never falls, even if a failed attempt loses its counts.
* Without a `TracerProvider` of the program no span is made.

Face: `run_observer.RunObserver`.
"""
