"""Expectations that cannot be are refused where they are declared."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from slackwater.planning.explanation import explain
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.plans.view_definition import ViewDefinition
from state.clock import SystemClock
from state.errors import ViewError


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on_violation": "hold"}, "on_violation='hold' needs expectations; add expect="),
        ({"expect": {"x": "x > 0"}, "on_violation": "stop"}, "'stop' is none of 'count', 'hold' and 'quarantine'"),
        ({"expect": ["x > 0"]}, "is no dict of conditions"),
        ({"expect": {"x": 0}}, "is no dict of conditions"),
        ({"expect": {" ": "x > 0"}}, "expectation ' ' lacks a name or a condition"),
        ({"expect": {"x": " "}}, "expectation 'x' lacks a name or a condition"),
    ],
)
def test_the_declaration_says_what_is_wrong(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ViewError, match="view 'v': ") as refused:
        ViewDefinition("v", query="SELECT x FROM s", **options)
    assert said in str(refused.value)


@pytest.mark.more
def test_explain_refuses_what_a_run_would_refuse(tmp_path_factory: pytest.TempPathFactory, local_spark: object) -> None:
    place = tmp_path_factory.mktemp("declared")
    pipeline = sw.Pipeline("p", place / "root")
    pipeline.source("s", place / "raw", format="csv", schema="x bigint")
    pipeline.view("good", "SELECT x FROM s", expect={"x is positive": "x > 0"}, on_violation="hold")
    pipeline.view("bad", "SELECT x FROM s", expect={"y is positive": "y > 0"})
    found = {
        each.name: each
        for each in explain(pipeline._definition(), tuple(pipeline.views.values()), SparkSettings(), SystemClock())
    }
    assert {name: each.view_class for name, each in found.items()} == {"good": "append", "bad": "refused"}
    assert "expectation 'y is positive'" in found["bad"].text


def test_expectations_change_nothing_of_the_plan(local_spark: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("plan")
    explained = []
    for options in ({}, {"expect": {"x is positive": "x > 0"}, "on_violation": "hold"}):
        pipeline = sw.Pipeline("p", place / "root")
        pipeline.source("s", place / "raw", format="csv", schema="x bigint")
        pipeline.view("v", "SELECT x FROM s", **options)  # type: ignore[call-overload]
        [found] = explain(pipeline._definition(), tuple(pipeline.views.values()), SparkSettings(), SystemClock())
        explained.append(found)
    assert explained[0] == explained[1]
