"""All benchmarks, one after the other: `python -m benchmarks`."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = (
    "reading",
    "small_files",
    "freshness",
    "bulk_reading",
    "many_files",
    "stored_rows",
    "relisting",
    "discovery_cost",
    "point_lookup",
    "view_costs",
    "late_view",
    "catching_up",
    "growing_view",
    "rescaling",
    "long_life",
)

for name in BENCHMARKS:
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
