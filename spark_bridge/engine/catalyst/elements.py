"""The parts of plans that a sequence of Scala holds: all in one call into the JVM, with what is asked of most of them.

A call for each element, one for the class of each and one for its id were half of the calls of an analysis.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.java_classes import java_instance

_SOURCE = Path(__file__).with_suffix(".java")


class Element(JavaObject):  # type: ignore[misc]
    """A part of a plan, as a Java object.

    Attributes:
        class_name: its class, without the package.
        plan_id: its id within a plan; -1 if it is neither an attribute nor an alias.
    """

    def __init__(self, client: Any, reference: str, class_name: str, plan_id: str) -> None:
        super().__init__(reference, client)
        self.class_name, self.plan_id = class_name, int(plan_id)


class Elements:
    """Reads sequences of Scala."""

    def __init__(self, spark: SparkSession) -> None:
        gateway: Any = spark.sparkContext._gateway
        self._gateway = gateway.java_gateway_server.getGateway()
        self._lines = java_instance(spark, _SOURCE, "Elements").lines

    def of(self, seq: Any) -> list[Any]:
        """The elements of a Seq: an `Element` for each part of a plan, else what py4j makes of them."""
        lines: str | None = self._lines(self._gateway, seq)
        if lines is None:
            return [seq.apply(index) for index in range(seq.size())]
        return [Element(seq._gateway_client, *line.split()) for line in lines.splitlines()]
