"""A session that the user has started with RayDP in this process: checked, used, and never ended."""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spark_bridge.engine.application.driver_jvm import ANSWER_S, begin_call
from state.errors import SettingsError

if TYPE_CHECKING:
    from spark_bridge.engine.session.settings import SparkSettings

# Without these Arrow's memory cannot be reached, and the executors crash over the first rows.
_NEEDED = ("java.base/java.nio", "java.base/sun.nio.ch")


def session_of_process() -> SparkSession | None:
    """The session of this process, if any.  A process has one JVM, so it cannot start a second application."""
    spark = SparkSession._instantiatedSession
    return None if spark is None or spark.sparkContext._jsc is None else spark


def refuse_unfit(spark: SparkSession) -> None:
    """Refuses a session that a run cannot use.

    Raises:
        SettingsError: it does not run on Ray, or has wrong settings that only a restart changes.
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
    """A second session on the user's application, with the settings for views.  The user's session keeps its own.

    Args:
        spark: the user's session, see `refuse_unfit`.
        settings: a running application takes those that it can still change.
    """
    child = spark.newSession()
    for name, value in settings.spark_configs().items():
        if child.conf.isModifiable(name):
            child.conf.set(name, value)
    return child


def confined_session(spark: SparkSession, settings: SparkSettings) -> SparkSession:
    """A second session on an application, for SQL of unknown origin.

    It has no view and no function of the other session.  A text names no file as a table, and has no variables, such as
    `${env:HOME}`.  Analyse the text before it runs.

    Args:
        spark: any session of the application.
        settings: as for `borrow`.
    """
    confined = borrow(spark, settings)
    confined.conf.set("spark.sql.runSQLOnFiles", "false")
    confined.conf.set("spark.sql.variable.substitute", "false")
    return confined


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
