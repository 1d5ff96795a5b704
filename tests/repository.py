"""The root of the repository, for tests that read its files or start programs in it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("state", "actors", "spark_bridge", "slackwater")
SIMULATOR = "tests/simulation"

ONE_PROCESS = pytest.mark.xdist_group("source code")
"""For modules whose tests read `trees`: one process parses the files, once."""


def trees(*packages: str) -> dict[Path, ast.Module]:
    """The syntax trees of all modules of these packages, by their paths relative to the repository."""
    return {file: tree for package in packages or PACKAGES for file, tree in _trees(package).items()}


@cache
def _trees(package: str) -> dict[Path, ast.Module]:
    files = sorted((REPOSITORY / package).rglob("*.py"))
    return {file.relative_to(REPOSITORY): ast.parse(file.read_text(encoding="utf-8")) for file in files}
