"""A setting that cannot be is refused where it is written, by name."""

from __future__ import annotations

from typing import Any

import pytest

from actors.settings import BarrierSettings, FetchSettings, ReadLimits
from slackwater.settings import RaySettings
from state.errors import SettingsError


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [
        (BarrierSettings, "interval_s", 0),
        (BarrierSettings, "interval_s", float("nan")),
        (BarrierSettings, "max_in_flight", -1),
        (BarrierSettings, "max_epoch_bytes", "128 MiB"),
        (BarrierSettings, "idle_interval_s", 2.0),
        (FetchSettings, "num_fetchers", 0),
        (FetchSettings, "num_fetchers", 257),
        (FetchSettings, "num_fetchers", True),
        (FetchSettings, "num_fetchers", (4, 2)),
        (FetchSettings, "num_fetchers", (1, 2, 3)),
        (FetchSettings, "concurrency", True),
        (FetchSettings, "max_attempts", None),
        (ReadLimits, "max_nesting", 0),
        (ReadLimits, "max_expansion", float("nan")),
        (RaySettings, "num_cpus", 0),
        (RaySettings, "namespace", ""),
    ],
)
def test_an_impossible_value_is_refused_by_name(kind: type[Any], option: str, value: object) -> None:
    with pytest.raises(SettingsError, match=option):
        kind(**{option: value})


def test_a_cluster_that_runs_already_has_its_own_cpus() -> None:
    with pytest.raises(SettingsError, match="num_cpus"):
        RaySettings(address="auto", num_cpus=2)


def test_settings_are_keyword_only_and_frozen() -> None:
    with pytest.raises(TypeError):
        BarrierSettings(1.0)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        BarrierSettings().interval_s = 2.0  # type: ignore[misc]


def test_one_number_of_fetch_actors_is_the_fewest_and_the_most() -> None:
    assert FetchSettings(num_fetchers=3).fetcher_bounds == (3, 3)
    assert FetchSettings(num_fetchers=(1, 8)).fetcher_bounds == (1, 8)
