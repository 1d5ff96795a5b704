"""A copy of the packages with a fault in it, and the simulator run on that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.repository import REPOSITORY

_PACKAGES = ("state", "actors", "spark_bridge", "slackwater")
_FIRST_FAILING_SEED = """
from slackwater.testing.simulation.campaign import first_failing_seed
print(first_failing_seed({start}, {seeds}, lambda scenario: {among}))
"""


def seeds_to_find(mutant: Mutant, directory: Path, seeds: int) -> int | None:
    """Number of seeds from `mutant.start` on until the simulator finds the fault; None if it does not within `seeds`.

    Args:
        mutant: the fault.
        directory: an empty one.
        seeds: the most that are tried.
    """
    for package in _PACKAGES:
        shutil.copytree(REPOSITORY / package, directory / package, ignore=shutil.ignore_patterns("__pycache__"))
    file = directory / mutant.file
    file.write_text(mutant.applied(file.read_text()))
    answer = subprocess.run(
        [sys.executable, "-c", _FIRST_FAILING_SEED.format(start=mutant.start, seeds=seeds, among=mutant.among)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(directory)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return None if answer == "None" else int(answer) - mutant.start + 1
