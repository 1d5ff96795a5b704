"""The class path of an application's JVMs."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path


def class_path() -> tuple[str, ...]:
    """The jars of RayDP, Spark and Ray, in the same order for every JVM of an application."""
    raydp, pyspark, ray_itself = (_package(name) for name in ("raydp", "pyspark", "ray"))
    spark = Path(os.environ.get("SPARK_HOME") or pyspark)
    places = (raydp / "jars", spark / "jars", ray_itself / "jars")
    return tuple(str(jar) for place in places for jar in sorted(place.glob("*.jar")))


def log_agent() -> str:
    """The jar of RayDP's agent, which sets the log files of executors; RayDP starts every executor with it."""
    return next(jar for jar in class_path() if Path(jar).name.startswith("raydp-agent"))


def _package(name: str) -> Path:
    """The directory of a package, found without an import: RayDP would load pandas and Ray Data."""
    found = importlib.util.find_spec(name)
    assert found is not None and found.origin is not None, f"{name} is a dependency"
    return Path(found.origin).parent
