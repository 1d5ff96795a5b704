"""Tests of the dashboard: it asks for published metrics only."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from itertools import combinations
from typing import Any

import pytest

from actors.telemetry.metrics import Metric
from slackwater.status.observability.run_metrics import METRICS

DASHBOARD: dict[str, Any] = json.loads((files("slackwater.status.observability") / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]

LEFT_OUT: frozenset[Metric] = frozenset()
"""What is published for others, and not shown."""

_FUNCTIONS = {"histogram_quantile", "max", "rate", "sum", "time"}
_SUFFIXES = {"histogram": "_bucket", "counter": "", "gauge": ""}
_SHOWN = {f"ray_{each.name}{_SUFFIXES[each.kind]}": each for each in METRICS}
_GROUPING = re.compile(r"\bby \(([^)]*)\)")
_MATCHERS = re.compile(r"\{([^}]*)\}")
_RANGE = re.compile(r"\[\$__rate_interval\]")


def names(expression: str) -> set[str]:
    """The metrics that an expression names, whoever publishes them."""
    bare = _RANGE.sub("", _MATCHERS.sub("", _GROUPING.sub("", expression)))
    return set(re.findall(r"[a-zA-Z_:][\w:]*", bare)) - _FUNCTIONS


def labels(expression: str) -> set[str]:
    """The labels that an expression groups by or matches."""
    grouped = [name.strip() for group in _GROUPING.findall(expression) for name in group.split(",")]
    return {*grouped, *re.findall(r"(\w+)=~?", " ".join(_MATCHERS.findall(expression)))}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_names_only_declared_metrics_and_their_labels(expression: str) -> None:
    assert names(expression) and names(expression) <= _SHOWN.keys()
    known = {label for name in names(expression) for label in ("pipeline", *_SHOWN[name].labels)}
    assert labels(expression) - {"le"} <= known
    assert ("le" in labels(expression)) == ("histogram_quantile" in expression)
    assert 'pipeline=~"$pipeline"' in expression, "every panel follows the choice of the pipeline"


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_only_what_grows_has_a_rate(expression: str) -> None:
    kinds = {_SHOWN[name].kind for name in names(expression)}
    has_a_rate = "rate(" in expression
    assert not (has_a_rate and "gauge" in kinds) and (has_a_rate or "histogram" not in kinds)


def test_every_metric_is_shown_or_left_out_on_purpose() -> None:
    shown = {_SHOWN[name] for expression in EXPRESSIONS for name in names(expression)}
    assert shown | LEFT_OUT == {*METRICS} and not shown & LEFT_OUT


def test_panels_have_a_place_and_a_description_of_their_own() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    assert all(panel["description"].endswith(".") for panel in PANELS)
    for one, other in combinations([panel["gridPos"] for panel in DASHBOARD["panels"]], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above


def test_everything_is_asked_of_the_data_source_that_is_chosen() -> None:
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["query"] == "prometheus"
    assert names(variables["pipeline"]["query"].replace("label_values", "").replace("pipeline", "")) <= _SHOWN.keys()
    for each in [*PANELS, *(target for panel in PANELS for target in panel["targets"]), variables["pipeline"]]:
        assert each["datasource"]["uid"] == "${datasource}"
