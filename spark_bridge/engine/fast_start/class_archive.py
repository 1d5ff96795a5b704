"""Class archive: a file with Spark's classes in Java's memory layout; every JVM of an application maps it.

    first application       each JVM lists the classes that it loads          <key>.<role>-<pid>.classes
        │ ends
        ↓
    build, in background    java -Xshare:dump over these lists                <key>.jsa, by a rename
        │
        ↓
    later applications      -XX:SharedArchiveFile=<key>.jsa

The key is a hash of the Java and of the path, size and time of every jar, so an archive fits exactly these.  A fault of
the directory or the file makes a start slower and has no other effect: Java verifies the checksums of the file, and
starts without a damaged one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Literal, get_args

import structlog

from spark_bridge.engine.application.class_path import class_path
from state.errors import RemovalRefusedError, SettingsError
from state.private_directory import open_private, private_directory
from state.removal.local_files import delete_at, new_file, replace_at
from state.removal.names import CLASS_ARCHIVES

_log = structlog.get_logger(actor="run")
_IDENTITY = re.compile(r" id: \d+$")
_UNUSED_S = 30 * 24 * 3600.0
_LARGEST_LIST = 32 << 20
# At its own address the archive is mapped as it is; later builds of Java 17 move it, which writes to every page.
_USE = "-XX:+VerifySharedSpaces -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"

JvmRole = Literal["driver", "executor"]
"""The kind of a JVM within an application."""


def cache_dir() -> Path | None:
    """The directory of archives: `$XDG_CACHE_HOME/slackwater` or `~/.cache/slackwater`; None without a home."""
    place = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(place) if place else Path.home() / ".cache") / "slackwater"
    except RuntimeError:
        return None


class ClassArchive:
    """The archive for one Java and one class path.

    Args:
        java_home: the home of the Java.
        jars: the first entries of every JVM's class path.
        directory: the directory of the archive.
    """

    def __init__(self, java_home: Path, jars: Sequence[str], directory: Path) -> None:
        self._java, self._jars, self._directory = java_home / "bin" / "java", tuple(jars), directory
        key = blake2b(digest_size=12)
        java = [str(java_home / name) for name in ("release", "lib/modules", "lib/server/libjvm.so")]
        for path in (*java, *jars):
            try:
                found = os.stat(path)
                key.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
            except OSError:
                key.update(f"{path}\0\n".encode())
        self._key = key.hexdigest()
        self.path = directory / f"{self._key}.jsa"

    def options(self, role: JvmRole) -> str:
        """Java's options that use the archive, or that list the loaded classes if no archive exists.

        Args:
            role: of the JVM.
        """
        if not self._has_directory():
            return ""
        with suppress(OSError):
            # The time of the file is that of its last use: unused archives are removed.
            os.utime(self.path)
        if os.access(self.path, os.R_OK):
            return f"-XX:SharedArchiveFile={self.path} {_USE}"
        if " " in str(self._directory) or not os.access(self._directory, os.W_OK):
            return ""
        return f"-XX:DumpLoadedClassList={self._directory}/{self._key}.{role}-%p.classes"

    def begin_build(self) -> None:
        """Starts a process of low priority that builds the archive, unless it exists or no class was listed.

        The process outlives this one by some seconds.  If the archive exists, the lists are removed.
        """
        if not self._has_directory():
            return
        lists = self._lists()
        if self.path.exists():
            self._delete(lists)
            return
        if not lists:
            return
        command = [sys.executable, "-m", "spark_bridge.engine.fast_start.class_archive"]
        command += [str(self._java.parent.parent), str(self._directory), *self._jars]
        try:
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            _log.debug("a class archive cannot be built", error=str(error))

    def build(self) -> bool:
        """Builds the archive from the lists.  Returns whether the archive exists now.

        One of several processes builds; a file under the archive's name is complete.
        """
        import fcntl

        with open(self._directory / f"{self._key}.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            if self.path.exists():
                return True
            lists = self._lists()
            part, classes = self.path.with_suffix(".part"), self.path.with_suffix(".list")
            self._delete([part, classes])  # left by a build that was killed
            with new_file(classes) as file:
                file.write("".join(f"{line}\n" for line in merged(each.read_text() for each in lists)).encode())
            done = subprocess.run(
                [
                    str(self._java),
                    "-Xshare:dump",
                    f"-XX:SharedClassListFile={classes}",
                    f"-XX:SharedArchiveFile={part}",
                    "-Xlog:disable",
                    "-cp",
                    ":".join(self._jars),
                ],
                capture_output=True,
                timeout=600,
                check=False,
            )
            if done.returncode == 0 and part.exists():
                with self._opened() as directory:
                    replace_at(directory, part.name, self.path.name, CLASS_ARCHIVES)
            self._delete([*lists, part, classes])
            self._remove_unused()
            return self.path.exists()

    def _has_directory(self) -> bool:
        """Whether the directory is private: an archive is code, which every JVM of an application runs."""
        try:
            private_directory(self._directory)
        except (OSError, SettingsError) as error:
            _log.debug("no directory for a class archive", directory=str(self._directory), error=str(error))
            return False
        return True

    def _lists(self) -> list[Path]:
        """The lists of loaded classes, the driver's first."""
        lists: list[Path] = []
        for role in get_args(JvmRole):
            for each in sorted(self._directory.glob(f"{self._key}.{role}-*.classes")):
                # Another process may be removing it.
                with suppress(OSError):
                    if 0 < each.stat().st_size <= _LARGEST_LIST:
                        lists.append(each)
        return lists

    def _remove_unused(self) -> None:
        """Removes the archives of other keys that were not used for a month."""
        now = os.stat(self.path).st_mtime if self.path.exists() else 0.0
        others = (each for each in self._directory.iterdir() if CLASS_ARCHIVES.covers(each.name))
        unused = [each for each in others if each.lstat().st_mtime < now - _UNUSED_S]
        self._delete(each for each in unused if not each.name.startswith(self._key))

    def _delete(self, files: Iterable[Path]) -> None:
        with self._opened() as directory:
            for each in files:
                with suppress(OSError, RemovalRefusedError):  # it is not a regular file, or is in use
                    delete_at(directory, each.name, CLASS_ARCHIVES)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """The descriptor of the directory, which only this user may enter."""
        directory = open_private(self._directory)
        try:
            yield directory
        finally:
            os.close(directory)


def class_archive() -> ClassArchive | None:
    """The archive for this process's Java and the jars of Spark; None without a directory for it."""
    directory = cache_dir()
    return None if directory is None else ClassArchive(Path(os.environ["JAVA_HOME"]), class_path(), directory)


def merged(lists: Iterable[str]) -> list[str]:
    """The lines of several class lists, each once.

    The last line of a killed JVM is incomplete and left out.  So are classes of the program's own class loaders: an
    archive cannot hold them.
    """
    lines: dict[str, None] = {}
    for text in lists:
        for line in text[: text.rfind("\n") + 1].splitlines():
            if not line.startswith("#") and " source: " not in line:
                lines[_IDENTITY.sub("", line)] = None
    return list(lines)


if __name__ == "__main__":
    os.nice(19)
    home, directory, *jars = sys.argv[1:]
    ClassArchive(Path(home), jars, Path(directory)).build()
