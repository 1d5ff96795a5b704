"""Where Spark, its JVM and py4j write, instead of on the terminal; and what the JVM does not listen to."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.accumulators import AccumulatorServer

LOG4J_FILE = "log4j2.properties"
# Ray's library inside the JVM, and Java itself, write past our logger, and to the standard output too.
# Whoever stops a job of Ray sends SIGTERM to every process below it: the JVM is needed for the last epoch.
_SPARK_ENV = 'exec >>"${SLACKWATER_SPARK_LOG:-/dev/stderr}" 2>&1\ntrap "" TERM\n'
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
    """Where the JVM of this process writes what would otherwise be on the terminal."""
    return Path(tempfile.gettempdir()) / f"slackwater-spark-{os.getpid()}.log"


def configuration_dir() -> Path:
    """A configuration directory for Spark that keeps its JVM off the terminal, unless the user has one."""
    path = Path(tempfile.gettempdir()) / f"slackwater-spark-{os.getuid()}"
    path.mkdir(exist_ok=True)
    for name, text in ((LOG4J_FILE, _LOG4J), ("spark-env.sh", _SPARK_ENV)):
        # Another process may be reading it.
        part = path / f"{name}.{os.getpid()}"
        part.write_text(text)
        part.replace(path / name)
    os.environ.setdefault("SPARK_CONF_DIR", str(path))
    os.environ["SLACKWATER_SPARK_LOG"] = str(log_file())
    return path


@contextmanager
def quiet_fork() -> Iterator[None]:
    """Starting Java forks; the copy becomes Java at once, so Lance is not used in it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="lance is not fork-safe")
        yield


def quiet_death() -> None:
    """Keeps the tracebacks off the terminal that a JVM's death makes: its error reaches the caller.

    py4j logs one for each call, on the root logger, and pyspark's server for accumulators prints one.
    """
    logging.getLogger().addFilter(_not_from_py4j)
    AccumulatorServer.handle_error = _say_nothing


def _not_from_py4j(record: logging.LogRecord) -> bool:
    return record.module not in ("java_gateway", "clientserver")


def _say_nothing(_server: AccumulatorServer, _request: object, _client_address: object) -> None:
    """The other end of the connection is gone, and with it whoever could act on it."""
