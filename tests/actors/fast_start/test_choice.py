"""The fast start is used with the versions with which it is tested, and if it is asked for."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from actors.fast_start import choice
from actors.fast_start.choice import TESTED, choose_for_ray, chooses_fast, untested, uses_private_ray
from tests.repository import REPOSITORY


@pytest.fixture
def newer_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata of packages name a minor version of Ray that is not tested."""
    described = tmp_path / "ray-2.600.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: ray\nVersion: 2.600.0\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(choice, "_reported", choice._reported.__wrapped__)


def test_installed_versions_are_tested() -> None:
    assert untested(tuple(TESTED)) == {}
    assert chooses_fast(True, "raydp", "pyspark") and not chooses_fast(False, "raydp")


def test_newer_ray_starts_plainly_with_one_line_in_the_log(newer_ray: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert untested(("ray", "raydp")) == {"ray": "2.600.0"}
    assert not chooses_fast(True, "raydp", "pyspark")
    [line] = capsys.readouterr().out.splitlines()
    assert "ray=2.600.0" in line and "tested_ray=2.60.*" in line


def test_package_without_metadata_is_not_tested(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert untested(("pyspark",)) == {"pyspark": "unknown"}


def test_setting_counts_for_the_connection_of_this_process() -> None:
    try:
        assert not choose_for_ray(False) and not uses_private_ray()
    finally:
        assert choose_for_ray(True) and uses_private_ray()


@pytest.mark.parametrize("package", TESTED)
def test_requirements_allow_the_tested_minor_version_alone(package: str) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [requirement] = [each for each in project["dependencies"] if re.match(rf"{package}\b", each)]
    major, minor = map(int, TESTED[package].split("."))
    allowed = rf">={major}\.{minor}[.\d]*,(<{major}\.{minor + 1}|<={major}\.{minor}\.\d+)"
    assert re.search(f"{allowed}$", requirement), requirement
