"""The cost of an epoch for each view: the medians over the epochs that changed it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from state.tables.epoch_trace import EpochTrace, Span, WorkCost
from state.tables.records import EpochRecord

CORRECTED = ", corrected files"
"""At the end of the name of a span: the view followed corrected files."""


@dataclass(frozen=True)
class ViewCost:
    """The cost of one view, or of an internal view of it.

    Args:
        epochs: the number of epochs that changed it.
        seconds: of an epoch's work on it, the median.
        most_seconds: the most that an epoch took.
        cost: rows and bytes of an epoch, each the median.
    """

    name: str
    epochs: int
    seconds: float
    most_seconds: float
    cost: WorkCost


def view_costs(records: Iterable[EpochRecord]) -> dict[str, ViewCost]:
    """Name of a view or an internal view → its costs; a view that none of the epochs changed is left out."""
    found: dict[str, list[Span]] = {}
    for record in records:
        for name, spans in _of_epoch(record).items():
            total = sum((each.cost for each in spans if each.cost is not None), WorkCost())
            found.setdefault(name, []).append(Span("spark", name, 0.0, sum(each.seconds for each in spans), total))
    return {name: _cost(name, spans) for name, spans in found.items()}


def _of_epoch(record: EpochRecord) -> Mapping[str, list[Span]]:
    """Name of a view → the spans of the work on it in one epoch; views that share a dataset have the same."""
    spans: dict[str, list[Span]] = {}
    sharing: dict[str, list[str]] = {}
    for name, version in record.views.items():
        sharing.setdefault(version.path, []).append(name)
    for span in () if record.trace is None else EpochTrace.of_json(record.trace).spans:
        name = span.name.removesuffix(CORRECTED)
        if span.phase == "spark" and name in record.views:
            for each in sharing[record.views[name].path]:
                spans.setdefault(each, []).append(span)
    return spans


def _cost(name: str, epochs: list[Span]) -> ViewCost:
    costs = [each.cost or WorkCost() for each in epochs]
    seconds = [each.seconds for each in epochs]
    return ViewCost(
        name,
        len(epochs),
        median(seconds),
        max(seconds),
        WorkCost(
            given=int(median(each.given for each in costs)),
            found=int(median(each.found for each in costs)),
            written=int(median(each.written for each in costs)),
            written_bytes=int(median(each.written_bytes for each in costs)),
        ),
    )
