"""A SparkSession without Ray, inside one JVM: for plans, verification and benchmarks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from actors.fast_start.choice import chooses_fast
from spark_bridge.engine.application.class_path import class_path
from spark_bridge.engine.application.java import prepare_java
from spark_bridge.engine.application.spark_log import LOG4J_FILE, configuration_dir, quiet_fork, warehouse_dir
from spark_bridge.engine.session.borrowed_session import borrow, session_of_process
from spark_bridge.engine.session.settings import SparkSettings


@contextmanager
def session_at_hand(settings: SparkSettings, app_name: str) -> Iterator[SparkSession]:
    """A session for work that needs no Ray.

    If the process has a session, it is a second one on the same application, which lives on.  Otherwise it is a local
    session, which ends with the context.

    Args:
        settings: a running application takes those that it can still change.
        app_name: of a local session.
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
    """Starts a local session.  The process must not have another one."""
    prepare_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    configs = {"spark.sql.warehouse.dir": str(warehouse_dir()), **settings.spark_configs()}
    configs["spark.driver.extraJavaOptions"] += f" -Dlog4j2.configurationFile=file:{configuration_dir() / LOG4J_FILE}"
    if settings.class_archive and chooses_fast(settings.fast_start, "raydp", "pyspark"):
        _use_archive(configs)
    builder = SparkSession.builder.master(f"local[{settings.executor_cores}]").appName(app_name)
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    for name, value in configs.items():
        builder = builder.config(name, value)
    with quiet_fork():
        return builder.getOrCreate()


def _use_archive(configs: dict[str, str]) -> None:
    """Adds the archive of Spark's classes to the options of the JVM, if there is one."""
    from spark_bridge.engine.fast_start.class_archive import class_archive

    archive = class_archive()
    if archive is not None and archive.path.exists():
        # Java ignores an archive unless Java's class path begins with the class path of the archive.
        configs["spark.driver.extraClassPath"] = ":".join(class_path())
        configs["spark.driver.extraJavaOptions"] += f" {archive.options('driver')}"
