"""A copy of the packages with a fault in it, and the simulator or tests run on that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.mutants.mutant import Mutant
from tests.repository import PACKAGES, REPOSITORY

_SIMULATOR = ("tests/__init__.py", "tests/simulation")
# Some tests follow the views of a benchmark; `pyproject.toml` has the settings of pytest.
_TESTS = ("tests", "benchmarks", "pyproject.toml")
_SEARCH_S = 240
_COMPILED = shutil.ignore_patterns("__pycache__")
_FIRST_FAILING_SEED = """
from tests.simulation.campaign import first_failing_seed
print(first_failing_seed({start}, {seeds}, lambda scenario: {among}))
"""


def seeds_to_find(mutant: Mutant, directory: Path, seeds: int) -> int | None:
    """Number of seeds from `mutant.start` on until the simulator finds the fault.

    Returns None if it does not within `seeds`, or within four minutes, which is less than the limit of a test.

    Args:
        mutant: the fault.
        directory: an empty one.
        seeds: the most that are tried.
    """
    _copy(mutant, directory, _SIMULATOR)
    try:
        ended = subprocess.run(
            [sys.executable, "-c", _FIRST_FAILING_SEED.format(start=mutant.start, seeds=seeds, among=mutant.among)],
            cwd=directory,
            env=_environment(directory),
            capture_output=True,
            text=True,
            check=True,
            timeout=_SEARCH_S,
        )
    except subprocess.TimeoutExpired:
        return None
    answer = ended.stdout.strip()
    return None if answer == "None" else int(answer) - mutant.start + 1


def fails_with(mutant: Mutant, directory: Path) -> bool:
    """Whether a test of `mutant.shown_by` fails with the fault.

    Args:
        mutant: the fault.
        directory: an empty one.
    """
    _copy(mutant, directory, _TESTS)
    options = ["--exitfirst", "-p", "no:cacheprovider", "-m", "not ray and not long"]
    tests = [sys.executable, "-m", "pytest", *options, mutant.shown_by]
    ended = subprocess.run(tests, cwd=directory, env=_environment(directory), capture_output=True, check=False)
    return ended.returncode == pytest.ExitCode.TESTS_FAILED


def _copy(mutant: Mutant, directory: Path, paths: Iterable[str]) -> None:
    """Copies the packages and these paths of the repository, and puts the fault into the copy."""
    for path in (*PACKAGES, *paths):
        source, target = REPOSITORY / path, directory / path
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=_COMPILED)
        else:
            shutil.copy(source, target)
    file = directory / mutant.file
    file.write_text(mutant.applied(file.read_text()))


def _environment(directory: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(directory)}
