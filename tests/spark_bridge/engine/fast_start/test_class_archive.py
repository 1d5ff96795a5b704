"""The archive of classes is built once, Java uses it, and a faulty one has no effect."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from spark_bridge.engine.application.class_path import class_path
from spark_bridge.engine.application.java import prepare_java
from spark_bridge.engine.fast_start.class_archive import ClassArchive, cache_dir, merged
from tests.cases import few
from tests.waiting import eventually

_PROGRAM = "org.apache.spark.launcher.Main"


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """A small jar with a program in it."""
    (launcher,) = (path for path in class_path() if Path(path).name.startswith("spark-launcher"))
    return Path(shutil.copy2(launcher, tmp_path / "launcher.jar"))


def archive_of(jar: Path) -> ClassArchive:
    return ClassArchive(prepare_java(), [str(jar)], jar.parent / "cache")


def run(jar: Path, options: str) -> subprocess.CompletedProcess[str]:
    """Runs the program without arguments, as a JVM of an application is started: it prints its usage."""
    command = [str(prepare_java() / "bin" / "java"), *options.split(), "-Xshare:auto", "-Xlog:class+load:stdout"]
    return subprocess.run(
        [*command, "-cp", str(jar), _PROGRAM], capture_output=True, text=True, check=False, timeout=60
    )


def source_of_program(done: subprocess.CompletedProcess[str]) -> str:
    (line,) = (line for line in done.stdout.splitlines() if f" {_PROGRAM} source:" in line)
    return line.partition("source: ")[2]


@pytest.fixture
def archive(jar: Path) -> ClassArchive:
    made = archive_of(jar)
    run(jar, made.options("driver"))
    assert made.build()
    return made


def test_second_start_maps_the_classes_that_the_first_has_listed(jar: Path) -> None:
    first = archive_of(jar)
    assert source_of_program(run(jar, first.options("driver"))).startswith("file:")
    assert first.build()
    again = archive_of(jar)
    assert again.path.exists()
    assert "DumpLoadedClassList" not in again.options("driver")
    assert source_of_program(run(jar, again.options("driver"))).startswith("shared objects file")
    assert [each.suffix for each in sorted(again.path.parent.iterdir())] == [".jsa", ".lock"]


def test_damaged_archive_is_ignored(jar: Path, archive: ClassArchive) -> None:
    healthy = run(jar, archive.options("driver"))
    content = bytearray(archive.path.read_bytes())
    for place in range(len(content) // 3, len(content) - 1, 4096):
        content[place] ^= 0xFF
    archive.path.chmod(0o600)
    archive.path.write_bytes(content)
    damaged = run(jar, archive.options("driver"))
    assert source_of_program(damaged).startswith("file:")
    assert (damaged.returncode, damaged.stderr) == (healthy.returncode, healthy.stderr)


@pytest.mark.more
@pytest.mark.parametrize(
    "content", few([b"", b"no archive at all", b"\0" * 100_000], b""), ids=["empty", "text", "zeroes"]
)
def test_file_that_is_not_an_archive_is_ignored(jar: Path, archive: ClassArchive, content: bytes) -> None:
    archive.path.chmod(0o600)
    archive.path.write_bytes(content)
    assert source_of_program(run(jar, archive.options("driver"))).startswith("file:")


@pytest.mark.more
def test_another_jar_has_another_archive(jar: Path, archive: ClassArchive) -> None:
    os.utime(jar, (1, 1))
    assert archive_of(jar).path != archive.path


def test_without_a_directory_java_starts_without_archive(jar: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nowhere = ClassArchive(prepare_java(), [str(jar)], tmp_path / "file" / "cache")
    assert nowhere.options("driver") == ""
    nowhere.begin_build()


@pytest.mark.more
def test_a_process_of_its_own_builds(jar: Path) -> None:
    archive = archive_of(jar)
    run(jar, archive.options("driver"))
    archive.begin_build()
    eventually(archive.path.exists)


@pytest.mark.more
def test_one_of_two_builders_builds(jar: Path) -> None:
    archive = archive_of(jar)
    run(jar, archive.options("driver"))
    with open(archive.path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not archive.build()
    assert archive.build()


@pytest.mark.more
def test_files_of_others_in_the_directory_stay(jar: Path, archive: ClassArchive, tmp_path: Path) -> None:
    cache, users = archive.path.parent, tmp_path / "users"
    users.mkdir()
    unused = [cache / f"{'0' * 24}{ending}" for ending in (".jsa", ".driver-pid7.classes", ".lock")]
    others = [cache / name for name in ("notes.txt", "model.jsa", f"{'0' * 24}.txt", f"{'0' * 23}.jsa")]
    for file in (*unused, *others, users / "file"):
        file.write_bytes(b"x")
    (cache / f"{'1' * 24}.jsa").symlink_to(users / "file")
    (cache / f"{'2' * 24}.jsa").mkdir()
    later = archive.path.stat().st_mtime + 31 * 24 * 3600
    os.utime(archive.path, (later, later))
    archive._remove_unused()
    assert [file for file in unused if file.exists()] == []
    assert [file for file in (*others, users / "file") if not file.exists()] == []
    assert (cache / f"{'1' * 24}.jsa").is_symlink() and (cache / f"{'2' * 24}.jsa").is_dir()


@pytest.mark.more
def test_lists_made_during_a_build_are_removed(jar: Path, archive: ClassArchive) -> None:
    left = archive.path.with_name(f"{archive.path.stem}.driver-pid7.classes")
    left.write_text("java/lang/Object\n")
    archive.begin_build()
    assert not left.exists()
    assert archive.path.exists()


def test_lists_of_several_jvms_become_one() -> None:
    driver = "# Do not modify\njava/lang/Object id: 0\nb/B id: 7\n@lambda-proxy b/B run\n"
    killed = "java/lang/Object id: 0\nc/C id: 3\nx/Own id: 4 super: 0 source: file:/x\nb/Hal"
    assert merged([driver, killed]) == ["java/lang/Object", "b/B", "@lambda-proxy b/B run", "c/C"]


def test_cache_is_where_the_user_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "slackwater"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_dir() == tmp_path / "home" / ".cache" / "slackwater"
