"""Java classes of this package, which Janino, Spark's own compiler, compiles once in a session."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

_instances: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_PACKAGES = count(1)


def java_instance(spark: SparkSession, source: Path, name: str) -> Any:
    """An instance of a class, the same one each time in a session.

    Args:
        spark: the session.
        source: the file of the class, of the package `slackwater`; the class needs no arguments.
        name: of the class.
    """
    jvm: Any = spark._jvm
    made = _instances.setdefault(jvm, {})
    if name not in made:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        # py4j knows methods by the name of their class: another session in this JVM has a class of its own.
        package = f"slackwater.of{os.getpid()}n{next(_PACKAGES)}"
        compiler.cook(source.read_text().replace("package slackwater;", f"package {package};"))
        made[name] = compiler.getClassLoader().loadClass(f"{package}.{name}").newInstance()
    return made[name]
