"""Packages, classes and static methods of the JVM by their names; the JVM is asked once what a name means.

py4j asks for each step of a dotted name at each use, and Java looks through all jars for a step that is no class: that
was an eighth of the CPU time of Java while views were declared.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary, proxy

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage
from pyspark.sql import SparkSession

_known: WeakKeyDictionary[Any, JavaNames] = WeakKeyDictionary()


class JavaNames:
    """A package, or a class; a class can be called, which makes an object.

    Attributes are what the names in it mean.  Values of static fields are asked for each time.  A name that is no class
    when it is first used stays a package.

    Args:
        meaning: what py4j makes of the name.
    """

    def __init__(self, meaning: Any) -> None:
        self._meaning = meaning

    def __getattr__(self, name: str) -> Any:
        meaning = getattr(self._meaning, name)
        if isinstance(meaning, JavaMember):
            known: Any = meaning
        elif isinstance(meaning, JavaPackage | JavaClass):
            known = JavaNames(meaning)
        else:
            return meaning
        self.__dict__[name] = known
        return known

    def __call__(self, *arguments: Any) -> Any:
        return self._meaning(*arguments)


def java_names(spark: SparkSession) -> JavaNames:
    """The names of a session's JVM; they are shared by all its users."""
    jvm: Any = spark._jvm
    if jvm not in _known:
        _known[jvm] = JavaNames(proxy(jvm))
    return _known[jvm]
