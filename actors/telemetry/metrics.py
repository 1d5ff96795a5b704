"""The definition of a metric.

The names follow the conventions of Prometheus: base units, `_total` for counters.  Ray puts `ray_` in front of each.
The values of labels are few: a pipeline, its sources and its views, the phases, the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_AGES = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 3_600.0, 21_600.0, 86_400.0)


@dataclass(frozen=True)
class Metric:
    """The definition of a metric.

    Args:
        kind: `counter`, `gauge` or `histogram`.
        labels: labels beside `pipeline`, which every metric has.
        boundaries: upper ends of the buckets of a histogram.
    """

    name: str
    kind: Kind
    unit: str
    description: str
    labels: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()


def counter(name: str, unit: str, description: str, *labels: str) -> Metric:
    """A counter; its name without prefix and suffix."""
    return Metric(f"slackwater_{name}_total", "counter", unit, description, labels)


def gauge(name: str, unit: str, description: str, *labels: str) -> Metric:
    """A gauge; its name without the prefix."""
    return Metric(f"slackwater_{name}", "gauge", unit, description, labels)


def durations(name: str, description: str, *labels: str) -> Metric:
    """A histogram of durations of milliseconds to minutes; its name without prefix and unit."""
    return Metric(f"slackwater_{name}_seconds", "histogram", "seconds", description, labels, _SECONDS)


def ages(name: str, description: str, *labels: str) -> Metric:
    """A histogram of ages of up to a day; its name without prefix and unit."""
    return Metric(f"slackwater_{name}_seconds", "histogram", "seconds", description, labels, _AGES)
