"""The settings of the Spark application."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from state.errors import SettingsError

_OPENED_PACKAGES = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "java.math",
    "java.text",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
# Spark and Arrow reach into these packages; Java 17 refuses unless told.
_OPENS = " ".join(
    [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED_PACKAGES]
    + ["--add-opens=java.sql/java.sql=ALL-UNNAMED"]
)
# The first job is 1.5 s earlier, and jobs of a million rows are as fast.
# The simple compiler alone has 48 MB for code by default: a session with hundreds of views fills them, and dies.
_QUICK_START = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xshare:auto -Xlog:disable "
    "-Xlog:all=error:stderr"
)
_OPTION_CONFIGS = (
    "spark.driver.extraJavaOptions",
    "spark.executor.extraJavaOptions",
    "spark.ray.raydp_app_master.extraJavaOptions",
)


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """How large the Spark application is, and how it computes.

    Args:
        num_executors: Ray actors that run Spark tasks.  Fixed: a session that lives long must not lose executors.
        executor_cores: tasks that each runs at once.
        executor_memory: of each, as Java writes it (`"1g"`).
        driver_memory: of the JVM that plans, merges and collects.
        ansi: whether an overflow or a bad cast is an error (True) or null.  A root keeps what it was created with.
        start_timeout_s: how long the application may wait for room in the Ray cluster, and take to start.
        quick_start: start with the simple compiler and collector, for sessions on a laptop.
        class_archive: keep the classes of Spark in `~/.cache/slackwater`, as Java has them in memory: the first run
            notes which they are, and later ones start sooner.
        configs: further Spark settings, which win over all others.
    """

    num_executors: int = 1
    executor_cores: int = 1
    executor_memory: str = "1g"
    driver_memory: str = "1g"
    ansi: bool = False
    start_timeout_s: float = 180.0
    quick_start: bool = True
    class_archive: bool = True
    configs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("num_executors", "executor_cores"):
            if getattr(self, name) < 1:
                raise SettingsError(f"spark.{name} is {getattr(self, name)}; it must be at least 1")
        if self.start_timeout_s <= 0:
            raise SettingsError(f"spark.start_timeout_s is {self.start_timeout_s}; it must be above 0")

    def spark_configs(self) -> dict[str, str]:
        """Spark's own settings."""
        options = f"{_OPENS} {_QUICK_START}" if self.quick_start else _OPENS
        return {
            **dict.fromkeys(_OPTION_CONFIGS, options),
            "spark.driver.memory": self.driver_memory,
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.ansi.enabled": str(self.ansi).lower(),
            # An epoch is small: one shuffle partition, no replanning, no waiting for a better place.
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.locality.wait": "0",
            # Tasks of an epoch take turns with those of what is computed beside it, instead of waiting for all of them.
            "spark.scheduler.mode": "FAIR",
            "spark.dynamicAllocation.enabled": "false",
            "spark.ui.enabled": "false",
            # Nothing is ever stored by Spark; its default would leave a directory where the user stands.
            "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "slackwater-warehouse"),
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.ui.retainedExecutions": "10",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
            # Above this a merge is worth a job, whose code is compiled; below it is evaluated in the driver.
            "spark.sql.execution.arrow.localRelationThreshold": "2MB",
            **self.configs,
        }
