"""A scenario refuses settings and steps that exclude each other."""

from __future__ import annotations

import pytest

from slackwater.commands.operations import ForgetCommand, ReingestCommand, RetryCommand
from state.errors import SettingsError
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import ACCEPT, ASK, AT, CLOCK, PIN, START, Step, hide

_ALL_PAUSE = {"max_removed_share": 0.0, "max_removed_files": 0}


@pytest.mark.parametrize(
    ("story", "settings", "why"),
    [
        ((), {"full_view": True}, "no rows are stored"),
        ((), {"must_settle": True, "notifications": True}, "no queue of events"),
        ((ACCEPT,), {"on_change": "append"}, "on_change='fail'"),
        ((ASK(RetryCommand()),), {"order": "name"}, "out of its order"),
        ((ASK(ReingestCommand(file="a")),), {"order": "name"}, "out of its order"),
        ((ASK(ForgetCommand(file="a")),), {"order": "name"}, "out of its order"),
        ((PIN("p"), AT("before commit", CLOCK(3600))), {}, "clocks"),
        ((hide(listings=2),), _ALL_PAUSE, "several listings"),
        ((hide("a", listings=2),), {"on_change": "replace"}, "several listings"),
        ((hide(listings=2),), {"on_change": "replace", "notifications": True}, "several listings"),
    ],
)
def test_what_excludes_each_other_is_refused(story: tuple[Step, ...], settings: dict[str, object], why: str) -> None:
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
def test_what_goes_together_is_accepted(story: tuple[Step, ...], settings: dict[str, object]) -> None:
    assert Scenario(story, **settings).story == story  # type: ignore[arg-type]
