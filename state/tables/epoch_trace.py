"""The trace of an epoch: the spans of its time, as JSON that is small enough for every epoch record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Literal, TypeAlias, get_args

Phase: TypeAlias = Literal["fetch", "align", "spark", "collect", "commit"]

PHASES: tuple[Phase, ...] = get_args(Phase)
"""The phases in their order; see `EpochInFlight` for the last four."""

_KEPT = 16
_DIGITS = 5


@dataclass(frozen=True)
class WorkCost:
    """The rows and bytes of a piece of work on a view.

    Args:
        given: rows that Spark got.
        found: stored rows that were looked up by their keys.
        written: rows that were written.
        written_bytes: size of the files with these rows.
    """

    given: int = 0
    found: int = 0
    written: int = 0
    written_bytes: int = 0

    def __add__(self, other: WorkCost) -> WorkCost:
        return WorkCost(
            self.given + other.given,
            self.found + other.found,
            self.written + other.written,
            self.written_bytes + other.written_bytes,
        )


@dataclass(frozen=True)
class HotKey:
    """The key of which a piece of work on a view met the most rows, if they are many.

    Args:
        key: its columns and values, as text.
        rows: the number of its rows, or of its pairs in a join.
    """

    key: str
    rows: int


@dataclass(frozen=True)
class Span:
    """A part of an epoch's time.

    Args:
        phase: one of `PHASES`.
        name: an actor, a view or a step; empty for the whole phase.
        start_s: its start, in seconds from the injection of the barrier; negative before it.
        seconds: its duration in seconds.
        cost: rows and bytes, for work on a view.
        hot: the key with the most rows, for work on a view that joins or has windows; None if it has few.
    """

    phase: Phase
    name: str
    start_s: float
    seconds: float
    cost: WorkCost | None = None
    hot: HotKey | None = None


@dataclass(frozen=True)
class EpochTrace:
    """The phases of an epoch up to its commit, and the longest parts of each.

    Args:
        spans: in the order of the phases, each phase before its parts.
        left_out: phase → the number of shorter spans that are not kept.
        commit_before: the epoch committed before this one, and the duration of that commit in seconds: a commit cannot
            contain its own duration.  None for the first epoch of an attempt.
        planned_queries: queries that Spark analysed or planned during the work on the views.
    """

    spans: tuple[Span, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    commit_before: tuple[int, float] | None = None
    planned_queries: int = 0

    @classmethod
    def of(
        cls, spans: Iterable[Span], commit_before: tuple[int, float] | None = None, planned_queries: int = 0
    ) -> EpochTrace:
        """Keeps every phase and its 16 longest parts: the size does not grow with actors and views."""
        kept: list[Span] = []
        left_out: dict[str, int] = {}
        of_phase: dict[str, list[Span]] = {phase: [] for phase in PHASES}
        for span in spans:
            of_phase[span.phase].append(span)
        for phase, each in of_phase.items():
            parts = sorted((span for span in each if span.name), key=lambda span: -span.seconds)
            if len(parts) > _KEPT:
                left_out[phase] = len(parts) - _KEPT
            kept += (span for span in each if not span.name)
            kept += sorted(parts[:_KEPT], key=lambda span: (span.start_s, span.name))
        return cls(tuple(kept), left_out, commit_before, planned_queries)

    def to_json(self) -> str:
        """The trace as compact JSON; empty optional fields are omitted."""
        before = self.commit_before
        costs = {str(at): astuple(span.cost) for at, span in enumerate(self.spans) if span.cost is not None}
        hot = {str(at): astuple(span.hot) for at, span in enumerate(self.spans) if span.hot is not None}
        document = {
            "spans": [[s.phase, s.name, round(s.start_s, _DIGITS), round(s.seconds, _DIGITS)] for s in self.spans],
            **({"costs": costs} if costs else {}),
            **({"hot": hot} if hot else {}),
            **({"left_out": dict(self.left_out)} if self.left_out else {}),
            **({"commit_before": [str(before[0]), round(before[1], _DIGITS)]} if before else {}),
            **({"planned_queries": self.planned_queries} if self.planned_queries else {}),
        }
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def of_json(cls, text: str) -> EpochTrace:
        """The trace from the JSON of `to_json`."""
        document = json.loads(text)
        before = document.get("commit_before")
        costs = {at: WorkCost(*cost) for at, cost in document.get("costs", {}).items()}
        hot = {at: HotKey(*key) for at, key in document.get("hot", {}).items()}
        spans = (
            replace(Span(*each), cost=costs.get(str(at)), hot=hot.get(str(at)))
            for at, each in enumerate(document["spans"])
        )
        return cls(
            spans=tuple(spans),
            left_out=document.get("left_out", {}),
            commit_before=(int(before[0]), before[1]) if before else None,
            planned_queries=document.get("planned_queries", 0),
        )
