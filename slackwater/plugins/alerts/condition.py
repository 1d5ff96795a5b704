"""The condition of an alert: its text, and the subjects for which it holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Literal

from actors.sources.event_time import microseconds
from slackwater.status.run_status import PublicationStatus, RunStatus
from state.errors import SettingsError

Kind = Literal["source", "view", "publication", "pipeline"]
Unit = Literal["", "seconds"]

_COMPARED = re.compile(r"(?P<what>\D+?)\s*>\s*(?P<limit>.+)")
_SILENT = re.compile(r"(?P<what>no \w+)\s+for\s+(?P<limit>.+)")
_RUNS = ("running", "paused", "stopping")
_MICROSECONDS = 1e6


@dataclass(frozen=True)
class Facts:
    """The present state of a pipeline.

    Args:
        run: the status of the run.
        ledger: the counts of the last committed epoch, of all runs; None before the first.
        arrivals: source → the time at which the number of its files last grew.
    """

    run: RunStatus
    ledger: RunStatus | None
    arrivals: Mapping[str, datetime]
    now: datetime

    @property
    def is_running(self) -> bool:
        """True if the run has reached a phase in which its numbers are valid."""
        return self.run.phase in _RUNS

    def since(self, time: datetime) -> float:
        """Seconds since a time."""
        return (self.now - time).total_seconds()


Values = Mapping[str, float | None]
"""Subject → value; None without one."""


@dataclass(frozen=True)
class _Measure:
    kind: Kind
    unit: Unit
    values: Callable[[Facts], Values | None]


def _of_run(values: Callable[[Facts], Values]) -> Callable[[Facts], Values | None]:
    return lambda facts: values(facts) if facts.is_running else None


def _of_ledger(values: Callable[[RunStatus], Values]) -> Callable[[Facts], Values | None]:
    return lambda facts: None if facts.ledger is None else values(facts.ledger)


def _of_publications(value: Callable[[PublicationStatus], float]) -> Callable[[Facts], Values | None]:
    """By view and table: several tables may follow one view."""
    return _of_run(lambda facts: {f"{each.view} to {each.table}": value(each) for each in facts.run.publications})


def _no_commit(facts: Facts) -> Values | None:
    if facts.ledger is None or not facts.ledger.recent:
        return None
    return {"": facts.since(facts.ledger.recent[-1].committed_at)}


def _run_failed(facts: Facts) -> Values | None:
    return {"": float(facts.run.phase == "failed")} if facts.is_running or facts.run.phase == "failed" else None


_LEVELS = {
    "lag": _Measure(
        "source", "seconds", _of_run(lambda facts: {n: s.oldest_unfinished_s for n, s in facts.run.sources.items()})
    ),
    "watermark lag": _Measure(
        "source", "seconds", _of_run(lambda facts: {n: s.watermark_lag_s for n, s in facts.run.sources.items()})
    ),
    "view lag": _Measure("view", "seconds", _of_run(lambda facts: {n: v.behind_s for n, v in facts.run.views.items()})),
    "publication lag": _Measure("publication", "seconds", _of_publications(lambda each: each.behind_s)),
    "quarantined files": _Measure(
        "source", "", _of_ledger(lambda led: {n: s.quarantined for n, s in led.sources.items()})
    ),
    "bad records": _Measure("source", "", _of_ledger(lambda led: {n: s.rows_bad for n, s in led.sources.items()})),
    "filled columns": _Measure(
        "source", "", _of_ledger(lambda led: {n: len(s.filled_columns) for n, s in led.sources.items()})
    ),
    "paused removals": _Measure(
        "source", "", _of_ledger(lambda led: {n: s.paused_removals for n, s in led.sources.items()})
    ),
    "late rows": _Measure("view", "", _of_ledger(lambda led: {n: v.late_rows for n, v in led.views.items()})),
    "violations": _Measure(
        "view", "", _of_ledger(lambda led: {n: sum(v.violations.values()) for n, v in led.views.items()})
    ),
}
_SILENCES = {
    "no file": _Measure("source", "seconds", lambda facts: {n: facts.since(at) for n, at in facts.arrivals.items()}),
    "no commit": _Measure("pipeline", "seconds", _no_commit),
}
_FAILURES = {
    "source paused": _Measure(
        "source", "", _of_ledger(lambda led: {n: float(s.paused is not None) for n, s in led.sources.items()})
    ),
    "view failed": _Measure(
        "view", "", _of_ledger(lambda led: {n: float(v.error is not None) for n, v in led.views.items()})
    ),
    "held": _Measure(
        "view", "", _of_ledger(lambda led: {n: float(v.held_since is not None) for n, v in led.views.items()})
    ),
    "publication failed": _Measure("publication", "", _of_publications(lambda each: float(each.error is not None))),
    "run failed": _Measure("pipeline", "", _run_failed),
}
_MEASURES = {**_LEVELS, **_SILENCES, **_FAILURES}
FORMS = (
    *(f"{what} > {'DURATION' if each.unit else 'NUMBER'}" for what, each in _LEVELS.items()),
    *(f"{what} for DURATION" for what in _SILENCES),
    *_FAILURES,
)
"""The forms of a condition."""


@dataclass(frozen=True)
class Condition:
    """A condition that holds for some sources or views, or for the pipeline as a whole.

    Args:
        what: the words in front of its limit.
        limit: it holds above this value.
    """

    what: str
    limit: float

    @classmethod
    def of(cls, text: str) -> Condition:
        """Reads a condition, as `lag > 5 minutes`, `no file for 2 hours` or `view failed`; see `FORMS`.

        Raises:
            SettingsError: it is none.
        """
        words = " ".join(text.lower().split())
        if words in _FAILURES:
            return cls(words, 0.0)
        if (found := _COMPARED.fullmatch(words)) and (level := _LEVELS.get(found["what"])):
            return cls(found["what"], _seconds(text, found["limit"]) if level.unit else _number(text, found["limit"]))
        if (found := _SILENT.fullmatch(words)) and found["what"] in _SILENCES:
            return cls(found["what"], _seconds(text, found["limit"]))
        forms = {each.lower(): each for each in FORMS}
        near = get_close_matches(words, forms, 1, 0.45)
        hint = f"did you mean {forms[near[0]]!r}? " if near else ""
        raise SettingsError(f"alert {text!r}: {hint}the conditions are: {', '.join(FORMS)}")

    @property
    def kind(self) -> Kind:
        """The kind of its subjects."""
        return self._measure.kind

    @property
    def unit(self) -> Unit:
        """The unit of its values."""
        return self._measure.unit

    def holding(self, facts: Facts) -> dict[str, float] | None:
        """Subject → value, for each for which it holds; the subject of a pipeline is empty.

        Returns:
            None if the facts are unknown.
        """
        values = self._measure.values(facts)
        if values is None:
            return None
        return {subject: value for subject, value in values.items() if value is not None and value > self.limit}

    @property
    def _measure(self) -> _Measure:
        return _MEASURES[self.what]


def _seconds(text: str, limit: str) -> float:
    return microseconds(f"alert {text!r}: the limit ", limit) / _MICROSECONDS


def _number(text: str, limit: str) -> float:
    try:
        return float(limit.replace(",", ""))
    except ValueError:
        raise SettingsError(f"alert {text!r}: invalid number {limit!r}; write it as in 'bad records > 100'") from None
