"""Metrics as exported, in memory; those that Prometheus or Ray would refuse are refused."""

from __future__ import annotations

from collections import defaultdict

from actors.telemetry.metrics import Metric


class Exported:
    """The last value, or the sum, or all observations of each metric, by its name and its labels' values."""

    def __init__(self) -> None:
        self.values: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
        self.observed: dict[str, dict[tuple[str, ...], list[float]]] = defaultdict(lambda: defaultdict(list))

    def add(self, metric: Metric, more: float, **labels: str) -> None:
        at = self._at(metric, "counter", labels)
        assert more > 0, "Ray refuses what does not count"
        self.values[metric.name][at] = self.values[metric.name].get(at, 0.0) + more

    def set_to(self, metric: Metric, value: float, **labels: str) -> None:
        self.values[metric.name][self._at(metric, "gauge", labels)] = float(value)

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        assert value >= 0
        self.observed[metric.name][self._at(metric, "histogram", labels)].append(value)

    @property
    def published(self) -> set[str]:
        return {*self.values, *self.observed}

    def _at(self, metric: Metric, kind: str, labels: dict[str, str]) -> tuple[str, ...]:
        assert (metric.kind, {*metric.labels}) == (kind, {*labels})
        return tuple(labels[name] for name in metric.labels)
