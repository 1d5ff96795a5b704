"""Metrics at the Prometheus endpoint that Ray has on the node of this process."""

from __future__ import annotations

from typing import Any

from ray.util import metrics

from actors.telemetry.metrics import Metric


class MetricExporter:
    """The metrics of one pipeline, as this process knows them.

    Ray must be connected.  A call takes some microseconds: Ray's own threads report the values, every ten seconds
    unless the cluster is configured otherwise.

    Args:
        pipeline: the label of all of them.
    """

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._metrics: dict[Metric, Any] = {}

    def add(self, metric: Metric, more: float, **labels: str) -> None:
        """A counter has grown."""
        self._made(metric).inc(more, tags={"pipeline": self._pipeline, **labels})

    def set_to(self, metric: Metric, value: float, **labels: str) -> None:
        self._made(metric).set(value, tags={"pipeline": self._pipeline, **labels})

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        """A histogram gets one more value."""
        self._made(metric).observe(value, tags={"pipeline": self._pipeline, **labels})

    def _made(self, metric: Metric) -> Any:
        made = self._metrics.get(metric)
        if made is None:
            made = self._metrics[metric] = _make(metric)
        return made


def _make(metric: Metric) -> Any:
    labels = ("pipeline", *metric.labels)
    if metric.kind == "histogram":
        boundaries = list(metric.boundaries)
        return metrics.Histogram(metric.name, metric.description, boundaries=boundaries, tag_keys=labels)
    kind = metrics.Counter if metric.kind == "counter" else metrics.Gauge
    return kind(metric.name, metric.description, tag_keys=labels)
