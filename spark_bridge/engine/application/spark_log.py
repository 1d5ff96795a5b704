"""Log and signals of Spark's JVM: it writes to a file instead of the terminal, and ignores SIGTERM.

The JVM runs a script of its configuration directory, so that directory is private, and new in each process.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.accumulators import AccumulatorServer

from state.removal.own_directory import OwnDirectory

LOG4J_FILE = "log4j2.properties"
_LOG_FILE = "spark.log"
_WAREHOUSE = "warehouse"
_CONF_VARIABLE = "SPARK_CONF_DIR"
_LOG_VARIABLE = "SLACKWATER_SPARK_LOG"
# Ray's library inside the JVM, and Java itself, write to the standard output and error without our logger.
# Ray stops a job by SIGTERM to all its processes; the last epoch still needs the JVM.
# Spark's launcher is a JVM of its own, which only writes the command of the driver's JVM.
_SPARK_ENV = """\
exec >>"${SLACKWATER_SPARK_LOG:-/dev/stderr}" 2>&1
trap "" TERM
export SPARK_LAUNCHER_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC ${SPARK_LAUNCHER_OPTS:-}"
"""
_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %p %c{1}: %m%n%ex{0}
"""


def log_file() -> Path:
    """The file for the output of the JVM of this process's run.  It outlives the process."""
    _private_dir.keeps_log = True
    return _private_dir.path() / _LOG_FILE


def configuration_dir() -> Path:
    """Makes the configuration directory of this process's JVM.  Spark uses it unless the user has set one."""
    path = _private_dir.path()
    inherited = os.environ.get(_LOG_VARIABLE)
    if inherited is not None and os.environ.get(_CONF_VARIABLE) == str(Path(inherited).parent):
        # It is that of a parent process, and goes with it.
        del os.environ[_CONF_VARIABLE]
    os.environ.setdefault(_CONF_VARIABLE, str(path))
    os.environ[_LOG_VARIABLE] = str(path / _LOG_FILE)
    return path


def warehouse_dir() -> Path:
    """The directory of Spark's own tables.  It stays empty; Spark's default is the working directory."""
    return configuration_dir() / _WAREHOUSE


class _PrivateDir:
    """A new directory of this process, removed at its exit; the log of a run stays, and so do files of others."""

    def __init__(self) -> None:
        self.keeps_log = False
        self._directory: OwnDirectory | None = None
        self._lock = threading.Lock()

    def path(self) -> Path:
        with self._lock:
            if self._directory is None:
                self._directory = OwnDirectory("slackwater-spark-")
                self._directory.write(LOG4J_FILE, _LOG4J)
                self._directory.write("spark-env.sh", _SPARK_ENV)
                atexit.register(self._remove, self._directory, os.getpid())
            return self._directory.path

    def _remove(self, directory: OwnDirectory, process: int) -> None:
        if os.getpid() != process:
            return  # a fork of the process that uses it
        # A program with a session of its own may have saved tables in the warehouse: these stay.
        directory.remove([] if self.keeps_log else [_LOG_FILE], [_WAREHOUSE])


_private_dir = _PrivateDir()


@contextmanager
def quiet_fork() -> Iterator[None]:
    """Hides Lance's warning about forks: a fork that becomes Java does not use Lance."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="lance is not fork-safe")
        yield


def quiet_death() -> None:
    """Hides the tracebacks of a JVM's death, whose error reaches the caller anyway.

    py4j logs one for each call on the root logger, and pyspark's accumulator server prints one.
    """
    logging.getLogger().addFilter(_not_from_py4j)
    AccumulatorServer.handle_error = _say_nothing


def _not_from_py4j(record: logging.LogRecord) -> bool:
    return record.module not in ("java_gateway", "clientserver")


def _say_nothing(_server: AccumulatorServer, _request: object, _client_address: object) -> None:
    """Replaces the error handler of the server: the JVM at the other end is gone."""
