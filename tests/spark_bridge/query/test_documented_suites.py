"""Every query of TPC-H and Nexmark has the class and the operators that the guide tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks import nexmark_events, nexmark_queries, tpch, tpch_queries
from spark_bridge.operators.join.join_plan import JoinPlan
from spark_bridge.operators.limit.limit_plan import LimitPlan
from spark_bridge.operators.scalar_subquery.scalar_subquery_plan import ScalarSubqueryPlan
from spark_bridge.operators.window.window_plan import WindowPlan
from spark_bridge.plans.operator_plan import OperatorPlan
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.query.analysis import analyse
from tests.cases import one_of_each
from tests.repository import REPOSITORY

GUIDE = (REPOSITORY / "docs" / "guide" / "view-classes.md").read_text()
ROW = re.compile(r"^\| (q\d+) \| (\w+) \| (.*) \|$", re.MULTILINE)
LEFT_OUT = re.compile(r"^\| (q\d+) \| \| (.*) \|$", re.MULTILINE)
QUERIES = {"TPC-H": tpch_queries.QUERIES, "Nexmark": nexmark_queries.QUERIES}
SECTIONS = {suite: GUIDE.partition(f"\n### {suite}\n")[2].partition("\n### ")[0] for suite in QUERIES}
CASES = [(suite, *line) for suite, text in SECTIONS.items() for line in ROW.findall(text)]


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, pa.Schema]]:
    """Suite → table → schema."""
    tables = tpch.read_tables(tmp_path_factory.mktemp("tpch"), 0.001)
    return {"TPC-H": {name: table.schema for name, table in tables.items()}, "Nexmark": nexmark_events.SCHEMAS}


def test_the_guide_has_every_query() -> None:
    assert [(suite, name) for suite, name, _, _ in CASES] == [
        (suite, name) for suite, queries in QUERIES.items() for name in queries
    ]
    assert dict(LEFT_OUT.findall(SECTIONS["Nexmark"])) == nexmark_queries.LEFT_OUT


@pytest.mark.more_after(1)
@pytest.mark.parametrize(("suite", "name", "view_class", "operators"), one_of_each(CASES, lambda case: case[0::2]))
def test_a_query_has_the_class_and_the_operators_that_are_told(
    local_spark: SparkSession,
    schemas: Mapping[str, Mapping[str, pa.Schema]],
    suite: str,
    name: str,
    view_class: str,
    operators: str,
) -> None:
    definition = ViewDefinition("v", QUERIES[suite][name], on_full="allow")
    plan = analyse(local_spark, definition, schemas[suite], schemas[suite])
    assert plan.view_class == view_class
    if view_class == "full":
        assert operators in plan.reason
    else:
        assert operators == told(plan)


def told(plan: ViewPlan) -> str:
    """The operators of a view and of its internal views, each view after the views that it reads."""
    found = list[str]()
    for each in (*plan.inner, plan):
        found += map(operator, each.computed.values())
        found += ["groups"] if each.view_class == "aggregate" else []
    runs = ((name, len([*run])) for name, run in groupby(found))
    return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in runs) or "projection"


def operator(leaf: OperatorPlan) -> str:
    match leaf:
        case JoinPlan():
            return "join" if leaf.kind == "inner" else f"{leaf.kind} join"
        case WindowPlan():
            return "window"
        case LimitPlan():
            return "limit"
        case ScalarSubqueryPlan():
            return "single values"
        case _:
            return leaf.text
