"""Java classes from Python: what their names mean, and classes of this package.

py4j asks the JVM for each step of a dotted name at each use, and Java looks through all jars for a step that is no
class: that was an eighth of the CPU time of Java while views were declared.  So each name is asked for once.

Classes of this package are compiled once in a session, by Janino, Spark's own compiler.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, proxy

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage
from pyspark.sql import SparkSession

_instances: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_PACKAGES = count(1)
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


def java_instance(spark: SparkSession, source: Path, name: str) -> Any:
    """An instance of a class, the same one each time in a session.

    Args:
        source: the file of the class, of the package `slackwater`; the class needs no arguments.
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
