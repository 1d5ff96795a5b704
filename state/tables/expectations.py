"""Expectations of views, and the gate: the last epoch in which every view that holds results back fulfils its own.

They are rows of the catalog, in the commit of the epoch whose rows they count.  The same commit moves the tag
`published`, so that no crash comes between an epoch and its gate.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

OnViolation: TypeAlias = Literal["count", "hold", "quarantine"]
"""The reaction to rows that violate an expectation: they are counted, the gate closes, or a view of their own has them.

The expectations of that view of their own are recorded, and none of the view that they left.
"""

ON_VIOLATION: tuple[OnViolation, ...] = get_args(OnViolation)

PUBLISHED = "published"
"""The tag of the last epoch that the gate let pass."""

MOST_NAMED = 100
"""Of the files and groups whose rows violate an expectation, and of the epochs in which they came."""


@dataclass(frozen=True)
class Expectation:
    """An expectation of one view, with its counts.

    Args:
        condition: a condition of SQL over a row, or the text of one over the view as a whole.
        rows: the rows of the view that violate it now; 1 for the view as a whole.
        accepted: those among them that a release has accepted.
        came: the rows that began to violate it, ever.
        error: why it cannot be computed over the present rows; None if it can.
        found: the result of a condition over the view as a whole, in words; None for a condition over rows.
        waiting: origins of the rows that no release has accepted: the fingerprint of the file, or of the text of the
            group, as hexadecimal text → rows; at most a hundred, of rows with a known origin.
    """

    condition: str
    rows: int = 0
    accepted: int = 0
    came: int = 0
    error: str | None = None
    found: str | None = None
    waiting: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_violated(self) -> bool:
        """True if it cannot be computed, or rows violate it that no release has accepted."""
        return self.rows > self.accepted or self.error is not None

    @property
    def released(self) -> Expectation:
        """The same, with all rows accepted that violate it now."""
        return replace(self, accepted=self.rows, waiting={})

    def followed(
        self, left: int, begun: int, left_from: Mapping[str, int], begun_from: Mapping[str, int]
    ) -> Expectation:
        """The same after a change of the rows.

        A row that violates no more counts as one that waited for a release if it is from where such rows are, and as an
        accepted one else: the gate may stay closed for too long, and never opens too early.

        Args:
            left: the number of rows that violate it no more, or are gone.
            begun: the number of rows that violate it now.
            left_from: where the ones are from, as `waiting` has it → rows; empty if no row waits.
            begun_from: where the others are from.
        """
        waiting = Counter(self.waiting)
        waited = (waiting & Counter(left_from)).total()
        waiting.subtract(left_from)
        waiting.update(begun_from)
        return replace(
            self,
            rows=self.rows + begun - left,
            accepted=max(0, self.accepted - (left - waited)),
            came=self.came + begun,
            waiting=dict((+waiting).most_common(MOST_NAMED)),
        )


@dataclass(frozen=True)
class ViewExpectations:
    """The expectations of one view as of an epoch.

    Args:
        view: the name of the view.
        expectations: name → expectation.
        held_since: the epoch since which the view holds the gate; None while it does not.
        epochs: the epochs in which rows began to violate, at most the last hundred; as of `held_since`.
        files: the fingerprints of the paths whose rows violate, as hexadecimal text → rows; at most a hundred.  Empty
            if the rows of the view do not name their file.
    """

    view: str
    on_violation: OnViolation
    expectations: Mapping[str, Expectation]
    held_since: int | None = None
    epochs: tuple[int, ...] = ()
    files: Mapping[str, int] = field(default_factory=dict)

    @property
    def conditions(self) -> dict[str, str]:
        """Name → condition."""
        return {name: each.condition for name, each in self.expectations.items()}

    @property
    def is_violated(self) -> bool:
        """True if any expectation is violated."""
        return any(each.is_violated for each in self.expectations.values())

    @property
    def holds_back(self) -> bool:
        """True if the view closes the gate."""
        return self.on_violation == "hold" and self.is_violated

    def settled(self, epoch: int, came_in: int | None = None) -> ViewExpectations:
        """The same, with the epochs that follow from its counts.

        Args:
            came_in: this epoch if rows began to violate in it.
        """
        if not self.is_violated:
            return replace(self, held_since=None, epochs=(), files={})
        epochs = self.epochs if came_in is None else (*self.epochs, came_in)[-MOST_NAMED:]
        files = dict(sorted(self.files.items(), key=lambda each: -each[1])[:MOST_NAMED])
        since = (self.held_since or epoch) if self.holds_back else None
        return replace(self, held_since=since, epochs=epochs, files=files)

    def released(self, epoch: int) -> ViewExpectations:
        """The same after a release: the rows that violate now are accepted, but no expectation that has an error."""
        accepted = {name: each.released for name, each in self.expectations.items()}
        return replace(self, expectations=accepted).settled(epoch)

    def taken(self, epoch: int, uncounted: str | None = None) -> ViewExpectations:
        """The same at a root that takes the view over, where no release has accepted its rows.

        Args:
            epoch: the epoch that takes it over.
            uncounted: the reason why its rows were not counted; None if they were.
        """
        taken = {
            name: replace(each, accepted=0, error=uncounted or each.error) for name, each in self.expectations.items()
        }
        return replace(self, expectations=taken, held_since=None).settled(epoch)

    def to_json(self) -> str:
        """The content of its row in the catalog."""
        return json.dumps({name: value for name, value in asdict(self).items() if name != "view"})

    @classmethod
    def of_json(cls, view: str, text: str) -> ViewExpectations:
        """Reads `to_json`."""
        document: dict[str, Any] = json.loads(text)
        expectations = {name: Expectation(**each) for name, each in document["expectations"].items()}
        return cls(view, **{**document, "expectations": expectations, "epochs": tuple(document["epochs"])})


Gate: TypeAlias = Literal["none", "open", "closed"]
"""The gate of a root: `none` if no view of it holds results back."""


def gate_of(expectations: Iterable[ViewExpectations]) -> Gate:
    """The state of the gate by the expectations of all views."""
    holding = [each for each in expectations if each.on_violation == "hold"]
    if not holding:
        return "none"
    return "closed" if any(each.holds_back for each in holding) else "open"


def published_after(before: Gate, after: Gate, *, last: int, epoch: int) -> int | None:
    """The epoch that the tag `published` names with a commit; 0 if it is deleted, None if it stays.

    Args:
        before: the gate as of the last commit.
        after: the gate as of this one.
        epoch: the epoch of this commit.
    """
    if after == "open":
        return epoch
    if after == "closed":
        return None if before == "closed" else last
    return None if before == "none" else 0
