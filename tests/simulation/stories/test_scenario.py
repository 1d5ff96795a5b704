"""A scenario refuses features that exclude each other, and additions avoid them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from slackwater.commands.operations import ForgetCommand, ReingestCommand, RetryCommand
from slackwater.plugins.after_commit.actions import Delete
from state.errors import SettingsError
from tests.simulation.stories.addition import Addition
from tests.simulation.stories.features import CONTENDED, GATE, PINS, RUNNING_BRANCH, STARTED
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import ACCEPT, ASK, AT, CLOCK, ON, PIN, START, Step, hide

_ALL_PAUSE = {"max_removed_share": 0.0, "max_removed_files": 0}


@pytest.mark.parametrize(
    ("story", "settings", "why"),
    [
        ((), {"full_view": True}, "a full view requires stored rows"),
        ((), {"must_settle": True, "notifications": True}, "a directory excludes queues of events"),
        ((ACCEPT,), {"on_change": "append"}, "ACCEPT requires on_change='fail'"),
        ((ASK(RetryCommand()),), {"order": "name"}, "excludes an order of files"),
        ((ASK(ReingestCommand(file="a")),), {"order": "name"}, "excludes an order of files"),
        ((ASK(ForgetCommand(file="a")),), {"order": "name"}, "excludes an order of files"),
        ((PIN("p"), AT("before commit", CLOCK(3600))), {}, "excludes a clock that is set"),
        ((), {"closing": True}, "closing windows requires event times"),
        ((), {"closing": True, "lateness_us": 25, "materialize": True}, "closing windows excludes stored rows"),
        ((), {"expiring": "inner", "lateness_us": 25}, "expire requires two sources"),
        ((CLOCK(3600),), {"idle_s": 20.0, "lateness_us": 25}, "idle sources excludes a clock that is set"),
        ((), {"after": Delete(keep_s=5), "on_change": "replace"}, "after the commit excludes on_change='replace'"),
        ((ON("b", START),), {"notifications": True}, "a branch that runs excludes queues of events"),
        ((ON("b", START),), {"closing": True, "lateness_us": 25}, "a branch that runs excludes .* closing windows"),
        ((hide(listings=2),), _ALL_PAUSE, "several listings lack requires on_change='replace'"),
        ((hide("a", listings=2),), {"on_change": "replace"}, "excludes listings that lack single files"),
        (
            (hide(listings=2),),
            {"on_change": "replace", "notifications": True},
            "several listings lack excludes queues of events",
        ),
    ],
)
def test_features_that_exclude_each_other_are_refused(
    story: tuple[Step, ...], settings: dict[str, object], why: str
) -> None:
    with pytest.raises(SettingsError, match=f"not valid: .*{why}"):
        Scenario(story, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("story", "settings"),
    [
        ((), {"full_view": True, "materialize": True}),
        ((ACCEPT,), {"on_change": "fail"}),
        ((START, hide("a")), {"on_change": "replace"}),
        ((hide(listings=2),), {"on_change": "replace"}),
        ((hide("a", listings=2),), {"on_change": "replace", "notifications": True, **_ALL_PAUSE}),
    ],
)
def test_features_that_fit_are_accepted(story: tuple[Step, ...], settings: dict[str, object]) -> None:
    assert Scenario(story, **settings).story == story  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("story", "settings", "is_added"),
    [
        ((START,), {}, True),
        ((), {}, False),
        ((START,), {"is_contended": True}, False),
        ((START,), {"notifications": True}, False),
        ((START, PIN("p")), {}, False),
        ((START, PIN("p")), {"gate": True}, True),
    ],
    ids=["fits", "lacks a feature", "has a feature", "the feature itself does not fit", "no share", "another share"],
)
def test_an_addition_is_made_to_stories_that_fit(
    story: tuple[Step, ...], settings: dict[str, object], is_added: bool
) -> None:
    scenario = Scenario(story, **settings)  # type: ignore[arg-type]
    addition = Addition(
        lambda scenario, _: replace(scenario, fetchers=7),
        share=1.0,
        shares_with=((GATE, 1.0), (PINS, 0.0)),
        feature=RUNNING_BRANCH,
        requires=(STARTED,),
        excludes=(CONTENDED,),
    )
    assert (addition.of(scenario, Random(0)).fetchers == 7) == is_added
