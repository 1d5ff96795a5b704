"""Settings of the Spark application: its size, its memory, and the semantics of its SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.telemetry.masked_repr import masked_repr
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
# Spark and Arrow access these packages by reflection; Java 17 forbids that without the option.
_OPENS = " ".join(
    [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED_PACKAGES]
    + ["--add-opens=java.sql/java.sql=ALL-UNNAMED"]
)
# A thread of Spark that dies of a full heap takes its message with it, and the job waits for ever.
_ENDS_WITHOUT_MEMORY = "-XX:+ExitOnOutOfMemoryError"
# The first job ends 1.5 s earlier, and jobs of a million rows are as fast.  With the second compiler, the driver takes
# twice the CPU time in the first twenty epochs of seven views, and a fifth more after them.
# With the simple compiler alone the code cache is 48 MB by default: hundreds of views fill it, and the JVM dies.
_QUICK_START = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xshare:auto -Xlog:disable "
    "-Xlog:all=error:stderr"
)
# Every page of the new generation is used before its first collection, and stays in memory: by default a third of
# RayDP's fixed heap.  The first collection of the whole heap gives it that size, for workloads that need one.
_SMALL_HEAP = "-XX:NewSize=32m -XX:PerfDataSamplingInterval=1000"
_HEAP_AT_START = "-Xms128m"
# The thread of Ray's log wakes a hundred times a second to look for lines, unless it blocks.
_QUIET_LOG = "-Dlog4j2.asyncLoggerConfigWaitStrategy=Block"
_DRIVER, _EXECUTOR = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """Size and semantics of the Spark application.

    Args:
        num_executors: number of Ray actors that run Spark tasks; fixed, so a long session loses no executor.
        executor_cores: number of tasks that an executor runs at once.
        executor_memory: memory of an executor, as Java writes it (`"1g"`).
        driver_memory: memory of the JVM that plans, merges and collects, as Java writes it.
        ansi: whether an overflow or a bad cast is an error (True) or null.  A root keeps the value of its creation.
        start_timeout_s: limit in seconds for the start, with the wait for room in the Ray cluster.
        quick_start: whether JVMs use the simple compiler and garbage collector, for sessions on a laptop.
        class_archive: whether an archive of Spark's classes is kept in `~/.cache/slackwater`: the first run lists the
            classes, and later runs start sooner.  It needs `fast_start`.
        fast_start: whether the start may use private parts of RayDP, pyspark and Java: RayDP's master is in the
            driver's JVM, which starts while Ray starts.  False starts Spark by `raydp.init_spark`, which takes longer.
            A version of Ray, RayDP or Spark that is not tested with the fast start has the effect of False.
        configs: further Spark settings; they win over all others.
    """

    num_executors: int = 1
    executor_cores: int = 1
    executor_memory: str = "1g"
    driver_memory: str = "2g"
    ansi: bool = False
    start_timeout_s: float = 180.0
    quick_start: bool = True
    class_archive: bool = True
    fast_start: bool = True
    configs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("num_executors", "executor_cores"):
            if getattr(self, name) < 1:
                raise SettingsError(f"spark.{name} is {getattr(self, name)}; it must be at least 1")
        if self.start_timeout_s <= 0:
            raise SettingsError(f"spark.start_timeout_s is {self.start_timeout_s}; it must be above 0")

    def __repr__(self) -> str:
        return masked_repr(self)

    def spark_configs(self) -> dict[str, str]:
        """Spark's own settings."""
        options = f"{_OPENS} {_ENDS_WITHOUT_MEMORY}"
        of_driver, of_executor = "", _QUIET_LOG
        if self.quick_start:
            options = f"{options} {_QUICK_START} {_SMALL_HEAP}"
            of_driver = _HEAP_AT_START
        return {
            _DRIVER: f"{options} {of_driver}".strip(),
            _EXECUTOR: f"{options} {of_executor}",
            "spark.driver.memory": self.driver_memory,
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.ansi.enabled": str(self.ansi).lower(),
            # An epoch is small: one shuffle partition, no replanning, no wait for data locality.
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.locality.wait": "0",
            # Tasks of an epoch take turns with tasks of a recomputation, instead of waiting for all of them.
            "spark.scheduler.mode": "FAIR",
            "spark.dynamicAllocation.enabled": "false",
            "spark.ui.enabled": "false",
            # Without it a JVM takes objects of Java from every process that reaches its ports.
            "spark.authenticate": "true",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.ui.retainedExecutions": "10",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
            # Above this size a merge runs as a job with compiled code; below, the driver evaluates it.
            "spark.sql.execution.arrow.localRelationThreshold": "2MB",
            **self.configs,
        }
