"""Every query of the guide has the class and the reason that the guide promises."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession

from actors.schemas.ddl import parse_schema
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from spark_bridge.query.removal import removal_text
from state.errors import NotIncrementalError
from tests.cases import one_of_each
from tests.repository import REPOSITORY

GUIDE = REPOSITORY / "docs" / "guide" / "view-classes.md"
SOURCE = re.compile(r"`(\w+) \((.*?)\)`")
ROW = re.compile(r"^\| `(.*)` \| (\w+) \| (.*?) ?\| (.*?) ?\|$", re.MULTILINE)
RULES = {
    "with their file": "with their file",
    "with their group": "with the row of",
    "by their values": "found by their values",
    "counted": "they are counted",
    "subtracted": "they are subtracted",
    "retracted": "may exceed the bound",
    "compared": "least or greatest value leaves",
    "computed again": "groups that",
    "recomputed": "next recomputation",
}
"""Rule → a part of what `explain` says of it."""

TEXT = GUIDE.read_text()
SCHEMAS = {name: parse_schema(columns) for name, columns in SOURCE.findall(TEXT)}
QUERIES = ROW.findall(TEXT)


def test_the_guide_has_queries_of_every_class() -> None:
    assert len(QUERIES) >= 70
    assert {view_class for _, view_class, _, _ in QUERIES} == {"append", "aggregate", "full", "refused"}
    assert {rule for _, _, rules, _ in QUERIES for rule in rules.split(", ") if rule} == {*RULES}


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    ("query", "view_class", "rules", "reason"), one_of_each(QUERIES, lambda case: (case[1], case[2]))
)
def test_a_query_has_the_class_and_the_rule_that_are_promised(
    local_spark: SparkSession, query: str, view_class: str, rules: str, reason: str
) -> None:
    allowed = ViewDefinition("v", query, on_full="allow")
    if view_class == "refused":
        with pytest.raises(NotIncrementalError, match=re.escape(reason)) as refused:
            analyse(local_spark, allowed, SCHEMAS, SCHEMAS)
        assert "on_full" not in str(refused.value), "no option allows it"
        return
    plan = analyse(local_spark, allowed, SCHEMAS, SCHEMAS)
    assert plan.view_class == view_class
    assert reason in plan.reason
    text = removal_text(Catalyst(local_spark), plan)
    assert [rule for rule, part in RULES.items() if part in text] == rules.split(", ")
    if view_class == "full":
        with pytest.raises(NotIncrementalError, match=f'{re.escape(reason)}.*on_full="allow"'):
            analyse(local_spark, ViewDefinition("v", query), SCHEMAS, SCHEMAS)
        assert "stored rows" in plan.explain()
