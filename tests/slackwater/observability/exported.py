"""Metrics as exported, in memory; those that Prometheus or Ray would refuse are refused."""

from __future__ import annotations

from collections import defaultdict

from actors.telemetry.metrics import Metric


class Exported:
    """The last value, or the sum, or all observations of each metric by its labels' values."""

    def __init__(self) -> None:
        self.values: dict[Metric, dict[tuple[str, ...], float]] = defaultdict(dict)
        self.observed: dict[Metric, dict[tuple[str, ...], list[float]]] = defaultdict(lambda: defaultdict(list))

    def add(self, metric: Metric, more: float, **labels: str) -> None:
        at = self._at(metric, "counter", labels)
        assert more > 0, "Ray refuses what does not count"
        self.values[metric][at] = self.values[metric].get(at, 0.0) + more

    def set_to(self, metric: Metric, value: float, **labels: str) -> None:
        self.values[metric][self._at(metric, "gauge", labels)] = float(value)

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        assert value >= 0
        self.observed[metric][self._at(metric, "histogram", labels)].append(value)

    @property
    def published(self) -> set[Metric]:
        return {*self.values, *self.observed}

    def _at(self, metric: Metric, kind: str, labels: dict[str, str]) -> tuple[str, ...]:
        assert (metric.value.kind, {*metric.value.labels}) == (kind, {*labels})
        return tuple(labels[name] for name in metric.value.labels)
