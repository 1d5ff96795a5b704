"""A session that the user has started with RayDP in this process: looked over, used, and never ended."""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spark_bridge.application.driver_jvm import ANSWER_S, begin_call
from state.errors import SettingsError

if TYPE_CHECKING:
    from spark_bridge.session.settings import SparkSettings

# Without these Arrow's memory cannot be reached, and the executors crash over the first rows.
_NEEDED = ("java.base/java.nio", "java.base/sun.nio.ch")


def session_of_process() -> SparkSession | None:
    """The session that this process has, if any; it has one JVM, so that another cannot be started."""
    spark = SparkSession._instantiatedSession
    return None if spark is None or spark.sparkContext._jsc is None else spark


def refuse_unfit(spark: SparkSession) -> None:
    """Raises if a run cannot use the session.

    Raises:
        SettingsError: it does not run on Ray, or was started with settings that cannot be changed and do not fit.
    """
    conf = spark.sparkContext.getConf()
    ours = "or stop it (spark.stop()) and the run starts one that fits"
    if not spark.sparkContext.master.startswith("ray://"):
        raise SettingsError(
            f"this process has a SparkSession on {spark.sparkContext.master}, and a run needs one on Ray: start it "
            f"with raydp.init_spark(...), {ours}"
        )
    if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        raise SettingsError(
            "the SparkSession of this process has spark.dynamicAllocation.enabled=true, and a session that lives long "
            f"must not lose its executors: start it without that, {ours}"
        )
    opened = {
        "driver": " ".join(_jvm_arguments(spark)),
        "executor": conf.get("spark.executor.extraJavaOptions", ""),
    }
    for role, options in opened.items():
        missing = [package for package in _NEEDED if f"{package}=" not in options]
        if missing:
            flags = " ".join(f"--add-opens={package}=ALL-UNNAMED" for package in missing)
            raise SettingsError(
                f"the SparkSession of this process was started without {flags}, and Java would refuse Arrow its "
                f"memory: give them in spark.{role}.extraJavaOptions, {ours}"
            )


def borrow(spark: SparkSession, settings: SparkSettings) -> SparkSession:
    """A session beside the user's, on the same application, under the settings that views are computed with.

    The user's own session keeps its settings.

    Args:
        spark: fit, see `refuse_unfit`.
        settings: those that a running application can still be given are set.
    """
    child = spark.newSession()
    for name, value in settings.spark_configs().items():
        if child.conf.isModifiable(name):
            child.conf.set(name, value)
    return child


def can_compute(spark: SparkSession) -> bool:
    """Whether the application answers and has an executor."""
    context = spark.sparkContext._jsc
    if context is None:
        return False
    try:
        executors = begin_call(lambda: int(context.sc().getExecutorMemoryStatus().size()) - 1).result(ANSWER_S)
    except (FutureTimeoutError, Py4JError, OSError):
        return False
    return executors > 0


def _jvm_arguments(spark: SparkSession) -> list[str]:
    jvm: Any = spark.sparkContext._jvm
    arguments = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    return [str(arguments.get(index)) for index in range(arguments.size())]
