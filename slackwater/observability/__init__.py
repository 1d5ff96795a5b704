"""What a run shows to the tools of others: metrics to Prometheus, spans to whatever takes OpenTelemetry.

Data flow: `RunControl` hands every `RunState` to the `RunObserver` → of each epoch that was committed `RunMetrics` and
`EpochSpans` hear, once → about once a second `RunMetrics` looks at the `RunStatus` as a whole.

Invariants:

* Observing changes nothing: what fails here is logged once, and the run goes on.
* Only `actors/telemetry/metrics.py` names metrics; `actors/hosting/metric_exporter.py` exports them to Ray.
* A counter never falls, whatever a failed attempt takes back.
* Without a `TracerProvider` of the program no span is made.

    run_observer.py  RunObserver: what is new, and how often to look
    run_metrics.py   RunMetrics: states and epochs → metrics
    epoch_spans.py   EpochSpans: epochs → spans
    dashboard.json   the metrics on a screen of Grafana
"""
