"""What names of the JVM mean is asked for once."""

from __future__ import annotations

import pytest
from py4j.java_gateway import GatewayClient
from py4j.protocol import MEMORY_COMMAND_NAME, Py4JError
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.java_classes import java_names


def test_a_class_is_asked_for_once(local_spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    java = java_names(local_spark)
    assert java.java.util.concurrent.ConcurrentLinkedQueue().size() == 0
    sent: list[str] = []
    send = GatewayClient.send_command

    def told(client: GatewayClient, command: str, *arguments: object) -> object:
        # Java forgets the objects of other tests whenever Python collects them.
        if not command.startswith(MEMORY_COMMAND_NAME):
            sent.append(command)
        return send(client, command, *arguments)

    monkeypatch.setattr(GatewayClient, "send_command", told)
    made = java_names(local_spark).java.util.concurrent.ConcurrentLinkedQueue()
    assert [each[0] for each in sent] == ["i"], "only the constructor is called"
    assert made.size() == 0


def test_static_methods_fields_and_nested_classes_have_their_values(local_spark: SparkSession) -> None:
    java = java_names(local_spark).java
    for _ in range(2):
        assert java.lang.Integer.parseInt("12") == 12
        assert java.lang.Integer.MAX_VALUE == 2**31 - 1
        assert java.util.AbstractMap.SimpleEntry("a", 1).getKey() == "a"


def test_a_name_that_is_no_class_cannot_be_called(local_spark: SparkSession) -> None:
    with pytest.raises((TypeError, Py4JError)):
        java_names(local_spark).java.util.NoSuchThing()
