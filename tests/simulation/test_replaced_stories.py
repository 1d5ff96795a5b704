"""Stories of versions that are to replace others, and that are deleted or changed before their rows are read."""

from __future__ import annotations

from typing import Any

import pytest

from slackwater.commands.operations import ReingestCommand
from tests.cases import few
from tests.simulation.conftest import Simulated
from tests.simulation.stories.steps import (
    ANSWERED,
    ASK,
    CAUGHT_UP,
    CRASH,
    EVENTS,
    KILL,
    RESCALE,
    SECONDS,
    START,
    back,
    file,
    hide,
    vanish,
)

_BEGUN = file("a"), file("b"), START, CAUGHT_UP
_LISTED = file("a", rows=5), EVENTS(12)
_PARTLY_READ = file("a", rows=30), EVENTS(40)
_LISTS: dict[str, Any] = {"listing_s": 2.0}
_NOTIFIES: dict[str, Any] = {"listing_s": 600.0, "notifications": True}
_SETTLES: dict[str, Any] = {"listing_s": 2.0, "must_settle": True}
_SHARDS: dict[str, Any] = {"listing_s": 2.0, "name_actors": 3}

GONE = {
    "deleted": (*_LISTED, vanish("a")),
    "gone during the reading": (*_PARTLY_READ, vanish("a")),
    "gone after a change": (*_LISTED, file("a", rows=2), EVENTS(5), vanish("a")),
    "gone at once after a change": (*_LISTED, file("a", rows=2), vanish("a")),
    "gone after its return": (*_LISTED, vanish("a"), EVENTS(30), back("a"), EVENTS(10), vanish("a")),
    "unreadable": (file("a", rows=5, bad_row=0), EVENTS(20), vanish("a")),
    "reingested": (ASK(ReingestCommand(file="a")), EVENTS(20), vanish("a")),
    "reingested and answered": (ASK(ReingestCommand(file="a")), ANSWERED, vanish("a")),
}
THERE = {
    "back": (*_LISTED, vanish("a"), EVENTS(30), back("a")),
    "back at once": (*_LISTED, vanish("a"), back("a")),
    "back later": (*_LISTED, vanish("a"), SECONDS(60), back("a")),
    "another version": (*_LISTED, vanish("a"), EVENTS(30), file("a", rows=2)),
    "another version at once": (*_LISTED, file("a", rows=2)),
    "missing in a listing": (*_LISTED, hide("a"), EVENTS(30)),
}
LATER = {
    "run on": (EVENTS(30), file("c")),
    "killed": (EVENTS(10), KILL, START),
    "killed later": (EVENTS(60), KILL, START),
    "list actor dies": (EVENTS(20), CRASH("list-s")),
    "fetch actor dies": (EVENTS(8), CRASH("fetch-0")),
    "rescaled": (RESCALE(3), EVENTS(30), RESCALE(1)),
}
CONTINUED = pytest.mark.parametrize("later", few(list(LATER), "run on", "killed"))
SETTINGS = pytest.mark.parametrize(
    "settings",
    few(
        [_LISTS, _NOTIFIES, _SETTLES, _SHARDS, {"max_removed_share": 0.0, "max_removed_files": 0, **_LISTS}],
        _LISTS,
        _NOTIFIES,
    ),
    ids=lambda settings: " ".join(map(str, settings)),
)


@pytest.mark.more_after(15)
@SETTINGS
@CONTINUED
@pytest.mark.parametrize("story", GONE)
def test_rows_leave_with_an_object_whose_last_version_was_not_read(
    simulated: Simulated, story: str, later: str, settings: dict[str, Any]
) -> None:
    for outcome in simulated(*_BEGUN, *GONE[story], *LATER[later], seeds=16, on_change="replace", **settings):
        assert "done" not in outcome.statuses["s/a"] and "quarantined" not in outcome.statuses["s/a"]


@pytest.mark.more_after(1)
@SETTINGS
@CONTINUED
@pytest.mark.parametrize("story", THERE)
def test_a_version_that_was_not_read_is_read_when_it_is_there_again(
    simulated: Simulated, story: str, later: str, settings: dict[str, Any]
) -> None:
    for outcome in simulated(*_BEGUN, *THERE[story], *LATER[later], seeds=16, on_change="replace", **settings):
        assert outcome.statuses["s/a"].count("done") == 1


@pytest.mark.more
@pytest.mark.parametrize("on_change", ["append", "ignore"])
@pytest.mark.parametrize("story", GONE)
def test_rows_stay_with_other_sources(simulated: Simulated, story: str, on_change: str) -> None:
    for outcome in simulated(
        *_BEGUN, *GONE[story], EVENTS(30), seeds=16, on_change=on_change, materialize=True, **_LISTS
    ):
        assert outcome.statuses["s/a"][0] == "done"
