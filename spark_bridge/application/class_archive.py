"""The classes of Spark as Java keeps them in memory, in a file that every JVM of an application maps.

    an application without one   each JVM notes the classes that it loads          <key>.<role>-<pid>.classes
        │ ends
        ↓
    build, beside everything     java -Xshare:dump over what was noted             <key>.jsa, by a rename
        │
        ↓
    every later one              -XX:SharedArchiveFile=<key>.jsa

The key names the Java and every jar with its size and time, so an archive is never of anything else.  Whatever is
wrong with the directory or the file makes a start slower and nothing else: Java checks the file's sums before it uses
it, and goes on without.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import structlog

_log = structlog.get_logger(actor="run")
_IDENTITY = re.compile(r" id: \d+$")
_UNUSED_S = 30 * 24 * 3600.0
_LARGEST_LIST = 32 << 20
ROLES = ("driver", "master", "executor")


def cache_dir() -> Path | None:
    """Where archives are kept: `$XDG_CACHE_HOME/slackwater`, by default `~/.cache/slackwater`; None without a home."""
    place = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(place) if place else Path.home() / ".cache") / "slackwater"
    except RuntimeError:
        return None


class ClassArchive:
    """The archive for one Java and one class path.

    Args:
        java_home: whose it is.
        jars: the class path that all JVMs begin with.
        directory: where it is kept.
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

    def options(self, role: str) -> str:
        """Java's options to use the archive; without one, to note what the next one is made of.

        Args:
            role: of the JVM, one of `ROLES`.
        """
        with suppress(OSError):
            # Others that have not been used for long are removed by this time.
            os.utime(self.path)
        if os.access(self.path, os.R_OK):
            return f"-XX:SharedArchiveFile={self.path} -XX:+VerifySharedSpaces"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            _log.debug("no place for a class archive", directory=str(self._directory), error=str(error))
            return ""
        if " " in str(self._directory) or not os.access(self._directory, os.W_OK):
            return ""
        return f"-XX:DumpLoadedClassList={self._directory}/{self._key}.{role}-%p.classes"

    def begin_build(self) -> None:
        """Lets a process of low priority build the archive, unless there is one, or nothing was noted yet.

        The process outlives this one by the seconds that it takes.  When there is an archive, what was noted meanwhile
        is removed.
        """
        lists = [each for role in ROLES for each in self._lists(role)]
        if self.path.exists():
            for each in lists:
                with suppress(OSError):
                    each.unlink()
            return
        if not lists:
            return
        # As a file, since its package would load Spark.
        command = [sys.executable, __file__, str(self._java.parent.parent), str(self._directory), *self._jars]
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
        """Builds the archive of all that was noted.  Returns whether there is one now.

        Of several processes one builds; a file that is there under the archive's name is complete.
        """
        import fcntl

        with open(self._directory / f"{self._key}.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            if self.path.exists():
                return True
            lists = [each for role in ROLES for each in self._lists(role)]
            part, classes = self.path.with_suffix(".part"), self.path.with_suffix(".list")
            classes.write_text("".join(f"{line}\n" for line in merged(each.read_text() for each in lists)))
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
                part.replace(self.path)
            for each in (*lists, part, classes):
                each.unlink(missing_ok=True)
            self._remove_unused()
            return self.path.exists()

    def _lists(self, role: str) -> Iterable[Path]:
        for each in sorted(self._directory.glob(f"{self._key}.{role}-*.classes")):
            # Another process may be removing it.
            with suppress(OSError):
                if 0 < each.stat().st_size <= _LARGEST_LIST:
                    yield each

    def _remove_unused(self) -> None:
        """Removes what belongs to another Java or other jars and has not been used for a month."""
        now = os.stat(self.path).st_mtime if self.path.exists() else 0.0
        for each in self._directory.iterdir():
            if not each.name.startswith(self._key) and each.stat().st_mtime < now - _UNUSED_S:
                each.unlink(missing_ok=True)


def merged(lists: Iterable[str]) -> list[str]:
    """The lines of several class lists, each once, as they may stand together.

    A JVM that was killed leaves half a line at the end, and what a class loader of the program's own loads is left out.
    """
    lines: dict[str, None] = {}
    for text in lists:
        for line in text[: text.rfind("\n") + 1].splitlines():
            if not line.startswith("#") and " source: " not in line:
                lines[_IDENTITY.sub("", line)] = None
    return list(lines)


if __name__ == "__main__":
    os.nice(19)
    home, directory, *class_path = sys.argv[1:]
    ClassArchive(Path(home), class_path, Path(directory)).build()
