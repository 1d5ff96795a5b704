"""Memory of a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import lance, psutil, pyarrow as pa, pyarrow.dataset
from state.allocation import unmap_clean_files
held = lambda: psutil.Process().memory_info()
before = held()
unmap_clean_files()
after = held()
assert after.shared < before.shared / 4, (before, after)
assert before.rss - before.shared <= after.rss - after.shared + (1 << 20), (before, after)
dataset = lance.write_dataset(pa.table({"n": range(1_000)}), "memory://rows")
assert dataset.to_table(filter="n >= 900")["n"].to_pylist() == list(range(900, 1_000))
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux only")
def test_pages_that_were_not_changed_are_unmapped_and_mapped_again() -> None:
    ended = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
