"""Tests of the wheel: its content, and its work outside of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest

import slackwater
from tests.repository import PACKAGES, REPOSITORY

_CACHES = shutil.ignore_patterns("__pycache__")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, since what an earlier build has left in a tree would be packed, too."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    for name in (*PACKAGES, "tests", "benchmarks", "examples"):
        shutil.copytree(REPOSITORY / name, source / name, ignore=_CACHES)
    built = source / "dist"
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(built), str(source)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = built.glob("*.whl")
    return file


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel: Path) -> None:
    files = {
        str(each.relative_to(REPOSITORY))
        for package in PACKAGES
        for each in (REPOSITORY / package).rglob("*")
        if each.is_file() and "__pycache__" not in each.parts
    }
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == files


def test_the_wheel_is_typed_and_has_its_license(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert any(name.endswith("/LICENSE") for name in names)


def test_the_version_stands_in_one_place(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    assert metadata["Version"] == slackwater.__version__
    assert re.search(r'^version = "', (REPOSITORY / "pyproject.toml").read_text(), re.MULTILINE) is None


def test_the_installed_command_works_from_another_directory(wheel: Path, tmp_path: Path) -> None:
    target, elsewhere = tmp_path / "installed", tmp_path / "elsewhere"
    elsewhere.mkdir()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    command = [str(target / "bin" / "slackwater"), "--version"]
    printed = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, check=True).stdout
    assert printed == f"slackwater {slackwater.__version__}\n"
    code = "import actors, slackwater, spark_bridge, state; print(slackwater.__file__, state.__file__)"
    asked = [sys.executable, "-c", code]
    places = subprocess.run(asked, cwd=elsewhere, env=environment, capture_output=True, text=True, check=True).stdout
    assert all(place.startswith(str(target)) for place in places.split())
