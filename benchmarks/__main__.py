"""All benchmarks, one after the other: `python -m benchmarks`."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = ("small_files", "freshness", "long_life")

for name in BENCHMARKS:
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
