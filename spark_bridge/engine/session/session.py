"""The SparkSession of a run, on Ray: start, life, and end.

    prepare_java()  ->  begin_session(...)  ->  finish_session(...)  ->  ...  ->  stop_session()
                   └─►  ray.init(...)  ────┘

Java must be in the environment before `ray.init`, because Ray's workers inherit it and start `java` by its name.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from actors.fast_start.choice import chooses_fast
from spark_bridge.engine.application.authentication import CONFIGS
from spark_bridge.engine.application.driver_jvm import driver_answers
from spark_bridge.engine.application.spark_log import LOG4J_FILE, configuration_dir, quiet_death, warehouse_dir
from spark_bridge.engine.session.borrowed_session import borrow, can_compute, refuse_unfit, session_of_process
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from state.clock import SystemClock

if TYPE_CHECKING:
    from spark_bridge.engine.application.ray_application import RayApplication
    from spark_bridge.engine.application.session_start import ApplicationSpec, SessionStart, Step

_LOOK_S = 0.1
# A list of at most one application.
_running: list[RayApplication] = []
# Second sessions beside the user's own, see `find_session`.
_borrowed: weakref.WeakSet[SparkSession] = weakref.WeakSet()


def find_session(settings: SparkSettings) -> Callable[[], SparkSession] | None:
    """A function that gives the session of this process, ours or the user's; None if the process has no session.

    The caller stops neither the application nor that session.

    Raises:
        SettingsError: a run cannot use the user's session.
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
    """Whether the user started the application of a session, so that it must live on."""
    return spark in _borrowed


def begin_session(
    settings: SparkSettings, app_name: str, ray_is_up: Callable[[], bool], step: Step = nullcontext
) -> RayApplication:
    """Begins to start a session on Ray, as far as that does not need Ray; `finish_session` does the rest.

    Args:
        app_name: unique within the Ray cluster.
        ray_is_up: whether `ray.init` is over; it may run meanwhile.
        step: called with the name of each step of the start.
    """
    from spark_bridge.engine.application.ray_application import RayApplication
    from spark_bridge.engine.application.session_start import ApplicationSpec

    log4j = f"file:{configuration_dir() / LOG4J_FILE}"
    quiet_death()
    configs = {
        **CONFIGS,
        "spark.sql.warehouse.dir": str(warehouse_dir()),
        **settings.spark_configs(),
        "spark.log4j.config.file.name": log4j,
    }
    configs["spark.driver.extraJavaOptions"] += f" -Dlog4j2.configurationFile={log4j}"
    spec = ApplicationSpec(app_name, configs, settings.num_executors, settings.executor_cores, settings.executor_memory)
    application = RayApplication(spec, _start(settings, spec, step), step)
    application.launch(ray_is_up)
    return application


def _start(settings: SparkSettings, spec: ApplicationSpec, step: Step) -> SessionStart:
    if not chooses_fast(settings.fast_start, "raydp", "pyspark"):
        from spark_bridge.engine.application.raydp_start import RaydpStart

        return RaydpStart(spec, step)
    # Imports private modules of Ray, which another version may lack.
    from spark_bridge.engine.fast_start.class_archive import class_archive
    from spark_bridge.engine.fast_start.early_driver import EarlyDriver

    return EarlyDriver(spec, class_archive() if settings.class_archive else None, step)


def finish_session(application: RayApplication, timeout_s: float) -> SparkSession:
    """Finishes the start: the session has an executor and has run a first job.  Ray must be up.

    A process has one session at a time.

    Args:
        application: from `begin_session`.
        timeout_s: see `SparkSettings.start_timeout_s`.

    Raises:
        SparkNotStartedError: the start failed, or took too long; the session is ended.
        SparkLostError: the driver died meanwhile.
    """
    spark = application.start(timeout_s, warm_up)
    _running.append(application)
    return spark


def start_session(settings: SparkSettings, app_name: str) -> SparkSession:
    """`begin_session` and `finish_session` in one call.  Ray must be up."""
    return finish_session(begin_session(settings, app_name, lambda: True), settings.start_timeout_s)


def stop_session() -> None:
    """Ends the session that `start_session` began, with all its processes, in less than a minute.

    Another one may start then.  Objects of the old session do not work any longer.
    """
    while _running:
        _running.pop().end()


def is_alive(spark: SparkSession, timeout_s: float = 20.0) -> bool:
    """True if a session can compute.  A loss that only a new session repairs shows at once, or within 10 s.

    Args:
        timeout_s: seconds to wait for an executor; RayDP starts one again that died.
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
