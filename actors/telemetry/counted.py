"""The description of a counter: metadata of its field, with the unit, the help text, and the places that show it.

A counter is a field of a dataclass of the status, declared with `counted`.  Its actor counts it; the sums over actors
and attempts, `owner.json`, the metrics, the display, the log and the page follow from the description:

    bytes: int = counted("bytes", "Bytes that were read from the object store.", metric=("read_bytes", "source"))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from actors.telemetry.metrics import Kind, Metric, counter, gauge

_KEY = "counted"


@dataclass(frozen=True)
class TerminalColumn:
    """The column of a number on the display of a run.

    Args:
        title: at most as wide as the column.
        position: columns are ordered by it, from the left.
        width: in characters.
        rank: on a narrow terminal, columns with lower ranks are shown first.
        digits: the longest count that is written in full.
        is_alarm: a number above zero is red.
    """

    title: str
    position: int
    width: int
    rank: int
    digits: int = 7
    is_alarm: bool = False


@dataclass(frozen=True)
class Counted:
    """The description of a counter, or of another number of the status.

    Args:
        unit: `files`, `rows`, `bytes`, `seconds`, ...; a rate is `rows/s`.
        help: one sentence, also the help text of the metric.
        kind: `counter` for a number that only grows, else `gauge`.
        metric: the metric that publishes the number, if any.
        labels: labels of the metric that the field itself determines.
        column: the column on the display of a run, if any.
        page: the title on the page of `slackwater ui`; empty if it is not there.
        log: the name in log lines; numbers of the same name are added up; empty if it is in none.
        note: the words behind a number above zero in a note on the display of a run; empty for no note.
        is_line: whether `slackwater status --watch` prints the number into a pipe.
        is_news: whether a change of this number alone is worth a line there.
        in_ledger: whether the ledger keeps the count: it includes earlier runs, and a recovery reads it again.  A run
            adds up the other counters of its attempts.
        restarts: whether every attempt counts from zero.
    """

    unit: str
    help: str
    kind: Kind = "counter"
    metric: Metric | None = None
    labels: Mapping[str, str] | None = None
    column: TerminalColumn | None = None
    page: str = ""
    log: str = ""
    note: str = ""
    is_line: bool = False
    is_news: bool = True
    in_ledger: bool = False
    restarts: bool = False


def counted(
    unit: str,
    help: str,
    *,
    default: Any = 0,
    default_factory: Callable[[], Any] | None = None,
    kind: Kind = "counter",
    metric: tuple[str, ...] = (),
    labels: Mapping[str, str] | None = None,
    **places: Any,
) -> Any:
    """A field of a dataclass with its description.

    Args:
        unit: see `Counted`.
        help: see `Counted`.
        default: the value before the first count.
        default_factory: makes it, for a mapping.
        kind: see `Counted`.
        metric: the name of the metric without prefix and suffix, and the labels that name the subject; empty for none.
        labels: see `Counted`.
        places: the other fields of `Counted`.
    """
    made = None
    if metric:
        make = counter if kind == "counter" else gauge
        made = make(metric[0], unit, help, *metric[1:], *(labels or {}))
    metadata = {_KEY: Counted(unit, help, kind, made, labels, **places)}
    if default_factory is not None:
        return field(default_factory=default_factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def counters_of(kind: type) -> Mapping[str, Counted]:
    """Field → description, for the described fields of a dataclass, in their order."""
    return _counters_of(kind)


@cache
def _counters_of(kind: type) -> Mapping[str, Counted]:
    return {each.name: each.metadata[_KEY] for each in fields(kind) if _KEY in each.metadata}


def metrics_of(*kinds: type) -> tuple[Metric, ...]:
    """The metrics of the described fields of some dataclasses, each once."""
    found = (each.metric for kind in kinds for each in counters_of(kind).values())
    return tuple(dict.fromkeys(metric for metric in found if metric is not None))


def values_of(kind: type, source: object) -> dict[str, Any]:
    """The fields of a dataclass with their values in an object that has them all."""
    return {name: getattr(source, name) for name in _names(kind)}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))
