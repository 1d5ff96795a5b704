"""A start shows its first committed rows within three minutes on a machine without free processors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.busy_start import busy_processes, limited_processor, started
from benchmarks.startup import noting_start, write_files
from tests.repository import REPOSITORY

pytestmark = pytest.mark.long

_STARTS = 5
_LIMIT_S = 180.0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files of a pipeline, and the archive of its classes."""
    place = tmp_path_factory.mktemp("starts")
    write_files(place)
    noting_start(place, REPOSITORY)
    return place


def test_start_beside_four_busy_processes_per_core_is_in_time(place: Path) -> None:
    with busy_processes(4 * (os.cpu_count() or 1)):
        seconds = [started(place) for _ in range(_STARTS)]
    assert max(seconds) <= _LIMIT_S, seconds


@pytest.mark.skipif(os.getuid() != 0, reason="limits a processor")
def test_start_with_half_a_processor_is_in_time(place: Path) -> None:
    with limited_processor(0.5) as prefix:
        seconds = [started(place, prefix) for _ in range(_STARTS)]
    assert max(seconds) <= _LIMIT_S, seconds
