"""The class path of an application's JVMs."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path


def class_path() -> tuple[str, ...]:
    """The jars of RayDP, Spark and Ray, in the order in which every JVM of an application has them."""
    raydp, pyspark, ray_itself = (_package(name) for name in ("raydp", "pyspark", "ray"))
    spark = Path(os.environ.get("SPARK_HOME") or pyspark)
    places = (raydp / "jars", spark / "jars", ray_itself / "jars")
    return tuple(str(jar) for place in places for jar in sorted(place.glob("*.jar")))


def log_agent() -> str:
    """RayDP's agent, which its executors are never started without; all it does is to choose where they log."""
    return next(jar for jar in class_path() if Path(jar).name.startswith("raydp-agent"))


def _package(name: str) -> Path:
    """Where a package is, without importing it: RayDP would load pandas and Ray Data."""
    found = importlib.util.find_spec(name)
    assert found is not None and found.origin is not None, f"{name} is a dependency"
    return Path(found.origin).parent
