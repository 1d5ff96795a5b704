"""The states of alerts, and the notices that are not delivered: values, with the rules by which they change."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from state.errors import DamagedStoreError
from state.json_document import json_of
from state.location import Location
from state.ownership.conditional_file import ConditionalFile

NAME = "alerts.json"
TRIED_FOR = timedelta(hours=1)
_PAUSES = tuple(timedelta(seconds=each) for each in (10, 30, 60, 300))


@dataclass(frozen=True)
class ActiveState:
    """A condition that holds.

    Args:
        alert: the name of the alert.
        subject: the source or view; empty for the pipeline.
        since: the time at which it was found to hold.
    """

    alert: str
    subject: str
    since: datetime
    value: float


@dataclass(frozen=True)
class Notice:
    """A notice about a state.

    Args:
        event: `begin` or `end`.
        tries: attempts to deliver it that have failed.
        next_at: the time of the next attempt.
        error: the reason for the last failure; empty before the first.
    """

    state: ActiveState
    event: Literal["begin", "end"]
    at: datetime
    next_at: datetime
    tries: int = 0
    error: str = ""

    @property
    def is_given_up(self) -> bool:
        """True if the next attempt would be too late."""
        return self.next_at > self.at + TRIED_FOR


@dataclass(frozen=True)
class Arrivals:
    """The files of a source: their highest number so far, and the time at which it grew."""

    files: int
    at: datetime


@dataclass(frozen=True)
class AlertStates:
    """All states of the alerts of a root.

    Args:
        active: the conditions that hold.
        notices: the undelivered notices, oldest first.
        arrivals: by source.
    """

    active: tuple[ActiveState, ...] = ()
    notices: tuple[Notice, ...] = ()
    arrivals: Mapping[str, Arrivals] = field(default_factory=dict)

    def counted(self, files: Mapping[str, int], now: datetime) -> AlertStates:
        """The states after a count of the files of each source."""
        grown = {
            source: Arrivals(number, now)
            for source, number in files.items()
            if source not in self.arrivals or number > self.arrivals[source].files
        }
        return replace(self, arrivals={**self.arrivals, **grown}) if grown else self

    def declared(self, alerts: Collection[str]) -> AlertStates:
        """Without the states and notices of alerts that are not declared any more."""
        return replace(
            self,
            active=tuple(each for each in self.active if each.alert in alerts),
            notices=tuple(each for each in self.notices if each.state.alert in alerts),
        )

    def found(self, alert: str, holding: Mapping[str, float], now: datetime) -> AlertStates:
        """The states after a look at one alert.

        Args:
            holding: subject → value, for each for which its condition holds.
        """
        mine = {each.subject: each for each in self.active if each.alert == alert}
        begun = [ActiveState(alert, subject, now, holding[subject]) for subject in holding if subject not in mine]
        ended = [each for subject, each in mine.items() if subject not in holding]
        if not begun and not ended:
            return self
        notices = [Notice(each, "end", now, now) for each in ended] + [
            Notice(each, "begin", now, now) for each in begun
        ]
        active = [each for each in self.active if each not in ended]
        return replace(self, active=(*active, *begun), notices=(*self.notices, *notices))

    def due(self, now: datetime) -> list[Notice]:
        """The notices to deliver now: of each alert, only the oldest one that is not delivered."""
        first: dict[str, Notice] = {}
        for each in self.notices:
            first.setdefault(each.state.alert, each)
        return [each for each in first.values() if each.next_at <= now]

    def delivered(self, notice: Notice) -> AlertStates:
        """The states without a notice."""
        return replace(self, notices=tuple(each for each in self.notices if each != notice))

    def failed(self, notice: Notice, error: str, now: datetime) -> AlertStates:
        """The states after a failed attempt; a notice that has been tried for an hour is given up."""
        pause = _PAUSES[min(notice.tries, len(_PAUSES) - 1)]
        later = replace(notice, tries=notice.tries + 1, next_at=now + pause, error=error)
        if later.is_given_up:
            return self.delivered(notice)
        return replace(self, notices=tuple(later if each == notice else each for each in self.notices))

    def to_json(self) -> bytes:
        """The content of `alerts.json`."""
        return json.dumps(asdict(self), default=datetime.isoformat, indent=1).encode()

    @classmethod
    def of_json(cls, content: bytes) -> AlertStates:
        """Reads a content of `to_json`.

        Raises:
            ValueError: it is none.
        """
        from pydantic import TypeAdapter  # takes 0.1 s to import

        json_of(content)  # refuses numbers that are not finite
        states: AlertStates = TypeAdapter(cls).validate_json(content)
        times = [each.since for each in states.active] + [each.at for each in states.arrivals.values()]
        times += [at for each in states.notices for at in (each.state.since, each.at, each.next_at)]
        if any(at.tzinfo is None for at in times):
            raise ValueError("a time has no zone")
        return states


def states_file(root: Location) -> ConditionalFile:
    """The file `alerts.json` of a root."""
    return ConditionalFile(root, NAME)


def read_states(root: Location) -> AlertStates:
    """The states of the alerts of a root; none without a run that has alerts.

    Raises:
        StorageError: the root cannot be read.
        DamagedStoreError: the file is torn.
    """
    found = states_file(root).read()
    if found is None:
        return AlertStates()
    try:
        return AlertStates.of_json(found.content)
    except ValueError:
        raise DamagedStoreError(f"{root}/{NAME} is not a valid file of alerts; the next run writes it again") from None
