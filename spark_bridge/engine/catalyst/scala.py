"""Scala's collections and objects, for calls of Spark's constructors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.java_classes import java_names


class Scala:
    """Values of Scala in the JVM of one session."""

    def __init__(self, spark: SparkSession) -> None:
        self.jvm = java_names(spark)
        self._to_seq = self.jvm.PythonUtils.toSeq
        self.no_elements, self._option = self._to_seq([]), self.jvm.scala.Option
        self._no_value = self._option.empty()
        self._classes: dict[str, Any] = {}
        self._singletons: dict[str, Any] = {}

    def seq(self, elements: Iterable[Any]) -> Any:
        """A Scala Seq."""
        listed = list(elements)
        return self._to_seq(listed) if listed else self.no_elements

    def none(self) -> Any:
        """Scala's None."""
        return self._no_value

    def option(self, value: Any | None) -> Any:
        """Scala's Option of a value."""
        return self._option.apply(value)

    def singleton(self, class_name: str) -> Any:
        """A Scala object, named relative to `org.apache.spark.sql`."""
        if class_name not in self._singletons:
            self._singletons[class_name] = self.java_class(f"{class_name}$").getField("MODULE$").get(None)
        return self._singletons[class_name]

    def java_class(self, class_name: str) -> Any:
        """A Java class, named relative to `org.apache.spark.sql`."""
        if class_name not in self._classes:
            self._classes[class_name] = self.jvm.java.lang.Class.forName(f"org.apache.spark.sql.{class_name}")
        return self._classes[class_name]
