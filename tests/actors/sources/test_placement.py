"""Placement: the resources that actors ask of nodes, and the error when there is no room."""

from __future__ import annotations

from typing import Any

import pytest

from actors.hosting.ray_session import ray_address
from actors.sources.placement import ActorResources, PlacementSettings, without_room
from state.errors import SettingsError

_NODES = [{"CPU": 4.0, "memory": 8e9}, {"CPU": 2.0, "memory": 4e9, "stable": 1.0}]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"num_cpus": -1}, "num_cpus=-1"),
        ({"num_cpus": True}, "num_cpus=True"),
        ({"num_cpus": float("inf")}, "num_cpus=inf"),
        ({"memory_bytes": "1g"}, "memory_bytes='1g'"),
        ({"resources": {"stable": 0}}, "stable"),
        ({"resources": {"CPU": 1}}, "CPU"),
    ],
)
def test_what_no_node_can_have_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        ActorResources(**options)


def test_actors_that_ask_for_nothing_have_room_everywhere() -> None:
    assert without_room(PlacementSettings(), fetchers=256, names=0, controls=9, nodes=_NODES) == ""


def test_each_fetch_actor_takes_its_share_of_one_node() -> None:
    placement = PlacementSettings(fetch=ActorResources(num_cpus=1.5))
    assert without_room(placement, fetchers=3, names=0, controls=4, nodes=_NODES) == ""
    said = without_room(placement, fetchers=4, names=0, controls=4, nodes=_NODES)
    assert said == "4 fetch actors request CPU 1.5 each, and the 2 nodes have room for 3"


def test_name_actors_that_do_not_fit_are_counted() -> None:
    placement = PlacementSettings(names=ActorResources(resources={"memory_rich": 1}))
    said = without_room(placement, fetchers=2, names=3, controls=4, nodes=_NODES)
    assert said == "3 name actors request memory_rich 1 each, and the 2 nodes have room for 0"


def test_a_custom_resource_that_no_node_has_is_named() -> None:
    placement = PlacementSettings(control=ActorResources(resources={"stabel": 0.1}))
    said = without_room(placement, fetchers=2, names=0, controls=4, nodes=_NODES)
    assert "4 control actors request stabel 0.1 each" in said and "room for 0" in said


def test_a_run_joins_the_cluster_of_its_settings_and_else_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert ray_address(None) is None
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert ray_address(None) == "10.0.0.1:6379"
    assert ray_address("10.0.0.2:6379") == "10.0.0.2:6379"
    assert ray_address("local") is None


@pytest.mark.parametrize("address", ["http://127.0.0.1:8265", "ray://head:10001"])
def test_an_address_that_only_takes_jobs_is_refused_with_the_way_to_submit_one(address: str) -> None:
    with pytest.raises(SettingsError, match="ray job submit"):
        ray_address(address)
