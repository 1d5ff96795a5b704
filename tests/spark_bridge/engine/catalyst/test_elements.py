"""The parts of plans come in one call, with their classes and ids; what else a sequence holds comes as before."""

from __future__ import annotations

from unittest.mock import patch

from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.elements import Element
from spark_bridge.engine.catalyst.trees import attribute_id, simple_name

QUERY = "SELECT i, i + 1 AS next, upper(k) AS k FROM VALUES ('a', 1), ('b', 2) AS t(k, i) WHERE i > 1"


def test_parts_come_with_what_spark_says_of_them(local_spark: SparkSession) -> None:
    catalyst = Catalyst(local_spark)
    plan = catalyst.queries.analyse(catalyst.queries.parse(QUERY))
    parts = catalyst.trees.items(plan.expressions())
    assert [simple_name(each) for each in parts] == ["AttributeReference", "Alias", "Alias"]
    assert [attribute_id(each) for each in parts] == [each.exprId().id() for each in parts]
    assert [each.sql() for each in parts] == [plan.expressions().apply(at).sql() for at in range(3)]
    assert [simple_name(each) for each in catalyst.trees.items(parts[1].children())] == ["Add"]


def test_one_call_brings_all_parts(local_spark: SparkSession) -> None:
    catalyst = Catalyst(local_spark)
    expressions = catalyst.queries.analyse(catalyst.queries.parse(QUERY)).expressions()
    client = expressions._gateway_client
    with patch.object(client, "send_command", wraps=client.send_command) as sent:
        assert all(isinstance(each, Element) for each in catalyst.trees.items(expressions))
    commands = [call.args[0] for call in sent.call_args_list]
    assert sum(not each.startswith("m\n") for each in commands) == 1, "apart from objects that are let go"


def test_other_elements_come_as_they_are(local_spark: SparkSession) -> None:
    catalyst = Catalyst(local_spark)
    assert catalyst.trees.items(catalyst.scala.seq([])) == []
    assert catalyst.trees.items(catalyst.scala.seq(["a", 1, None])) == ["a", 1, None]
    rows = catalyst.queries.analyse(catalyst.queries.parse("VALUES ('a', 1)")).data()
    assert [simple_name(each) for each in catalyst.trees.items(rows)] == ["GenericInternalRow"]
