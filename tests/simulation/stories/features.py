"""Features of stories, and which of them exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.stories.scenario import Scenario


@dataclass(frozen=True)
class Feature:
    """A part of a scenario: a setting, or a kind of step.

    Args:
        name: as an error names it.
        is_in: whether a scenario has the feature.
        requires: the features that a scenario with this one must have.
        excludes: the features that it must not have.
        because: the reason for both.
    """

    name: str
    is_in: Callable[[Scenario], bool]
    requires: tuple[Feature, ...] = ()
    excludes: tuple[Feature, ...] = ()
    because: str = ""

    def fits(self, scenario: Scenario) -> bool:
        """True if a scenario has everything that the feature requires, and nothing that it excludes."""
        return next(self._conflicts(scenario), None) is None

    def conflicts(self, scenario: Scenario) -> Iterator[str]:
        """The reasons for which a scenario with the feature is not valid."""
        if self.is_in(scenario):
            yield from self._conflicts(scenario)

    def _conflicts(self, scenario: Scenario) -> Iterator[str]:
        for other in self.requires:
            if not other.is_in(scenario):
                yield f"{self.name} requires {other.name}: {self.because}"
        for other in self.excludes:
            if other.is_in(scenario):
                yield f"{self.name} excludes {other.name}: {self.because}"


def has_step(scenario: Scenario, *texts: str) -> bool:
    """True if a step of the story contains one of these texts in its literal."""
    steps = repr(scenario.story)
    return any(text in steps for text in texts)


def _step(name: str, *texts: str) -> Feature:
    return Feature(name, lambda scenario: has_step(scenario, *texts))


def _long_hides(scenario: Scenario) -> list[str]:
    steps = [repr(step) for step in scenario.story]
    return [step for step in steps if "hide(" in step and "listings=" in step]


STARTED = Feature("a start", lambda scenario: any(step.text == "START" for step in scenario.story))
CLOCK_SET = _step("a clock that is set", "CLOCK(")
BRANCHES = _step("branches", "BRANCH(")
BAD_RECORDS = _step("bad records", "bad=", "bad_row=")
KILLING_FILES = _step("files that kill their reader", "kills=")
READERS_DIE = _step("deaths of readers of a large file", "DEATH(")

STORED_ROWS = Feature("stored rows", lambda scenario: scenario.stores_rows)
EVENT_TIMES = Feature("event times", lambda scenario: scenario.lateness_us is not None)
TWO_SOURCES = Feature("two sources", lambda scenario: len(scenario.sources) > 1)
CLOCK_STANDS = Feature("a stopped clock", lambda scenario: scenario.clock_stands)
NOTIFICATIONS = Feature("queues of events", lambda scenario: scenario.notifications)
REPLACES = Feature("on_change='replace'", lambda scenario: scenario.on_change == "replace")
FAILS = Feature("on_change='fail'", lambda scenario: scenario.on_change == "fail")
ORDER = Feature("an order of files", lambda scenario: scenario.order is not None)
EPOCHS_EXPIRE = Feature("epochs that expire", lambda scenario: scenario.keep_epochs is not None)
CONTENDED = Feature("a contended root", lambda scenario: scenario.is_contended)
ON_LANCE = Feature("a twin on Lance", lambda scenario: scenario.on_lance)
GATE = Feature("views that hold results back", lambda scenario: scenario.gate)
PLACES = Feature("tables, or work on files", lambda scenario: bool(scenario.after or scenario.publishes))

FULL_VIEW = Feature(
    "a full view",
    lambda scenario: scenario.full_view,
    requires=(STORED_ROWS,),
    because="it is computed from stored rows",
)
CLOSING = Feature(
    "a view with closing windows",
    lambda scenario: scenario.closing,
    requires=(EVENT_TIMES,),
    excludes=(STORED_ROWS,),
    because="its model follows the watermark of a source that adds rows",
)
EXPIRING = Feature(
    "a join whose rows expire",
    lambda scenario: scenario.expiring is not None,
    requires=(EVENT_TIMES, TWO_SOURCES),
    excludes=(STORED_ROWS,),
    because="its model follows the watermarks of two sources that add rows",
)
IDLE = Feature(
    "idle sources",
    lambda scenario: scenario.idle_s is not None,
    requires=(EVENT_TIMES,),
    excludes=(CLOCK_STANDS, CLOCK_SET),
    because="the watermark of an idle source follows a clock that goes on",
)
FILE_WORK = Feature(
    "work on files after the commit",
    lambda scenario: scenario.after is not None,
    excludes=(REPLACES,),
    because="with on_change='replace' the removal of a file retracts its rows",
)
DIRECTORY = Feature(
    "a directory",
    lambda scenario: scenario.must_settle,
    excludes=(NOTIFICATIONS,),
    because="a directory has no queue of events",
)
ACCEPTED_CHANGES = Feature(
    "ACCEPT",
    lambda scenario: has_step(scenario, "ACCEPT"),
    requires=(FAILS,),
    because="only a run that fails over a changed file waits for the user",
)
READ_AGAIN = Feature(
    "a file that is read again or forgotten",
    lambda scenario: has_step(scenario, "RetryCommand(", "ReingestCommand(", "ForgetCommand("),
    excludes=(ORDER,),
    because="it is read out of its order",
)
PINS = Feature(
    "readers that pin epochs",
    lambda scenario: has_step(scenario, "PIN("),
    excludes=(CLOCK_SET,),
    because="readers and owners measure the lives of pins by clocks that nearly agree",
)
RUNNING_BRANCH = Feature(
    "a branch that runs",
    lambda scenario: has_step(scenario, "ON("),
    excludes=(NOTIFICATIONS, CLOSING, EXPIRING, IDLE),
    because="root and branch cannot both read a queue, and they close windows in other epochs",
)
LONG_HIDES = Feature(
    "files that several listings lack",
    lambda scenario: bool(_long_hides(scenario)) and not scenario.pauses_removals,
    requires=(REPLACES,),
    excludes=(
        NOTIFICATIONS,
        Feature(
            "listings that lack single files", lambda scenario: any("hide('" in step for step in _long_hides(scenario))
        ),
    ),
    because="their rows stay only if all files are lacking, or if every removal pauses",
)

VALID_WITH_OTHERS = (
    *(FULL_VIEW, CLOSING, EXPIRING, IDLE, FILE_WORK, DIRECTORY, ACCEPTED_CHANGES, READ_AGAIN, PINS, RUNNING_BRANCH),
    LONG_HIDES,
)
"""The features that require or exclude others: a `Scenario` checks them."""
