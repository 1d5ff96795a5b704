"""Log files and signals of Spark's JVM: it writes to a file instead of the terminal, and ignores SIGTERM."""

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
# Ray's library inside the JVM, and Java itself, write to the standard output and error without our logger.
# Ray stops a job by SIGTERM to all its processes; the last epoch still needs the JVM.
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
    """The file for the output of this process's JVM."""
    return Path(tempfile.gettempdir()) / f"slackwater-spark-{os.getpid()}.log"


def configuration_dir() -> Path:
    """Makes a configuration directory for Spark with these settings.  Spark uses it unless the user has set one."""
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
