"""The memory of the owner of a store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import REPOSITORY

_MORE_MIB = 30


@pytest.mark.more
def test_the_owner_holds_no_more_with_six_times_as_many_files(tmp_path: Path) -> None:
    fed = [sys.executable, "-m", "tests.state.upkeep.fed_store", str(tmp_path / "root"), "20", "120"]
    printed = subprocess.run(fed, cwd=REPOSITORY, check=True, capture_output=True, text=True, timeout=300).stdout
    after_10_000_files, after_60_000_files = map(int, printed.split())
    assert after_60_000_files <= after_10_000_files + _MORE_MIB
