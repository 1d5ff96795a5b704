"""The pipeline of the soak that moves files: `python keeping_job.py ROOT SOURCES ARCHIVE TABLES`.

`orders` are moved when their rows are committed and published; `prices` are corrected.  It does not end by itself.  The
storage options come in the environment.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TypeAlias

import slackwater as sw
from tests.real.job import SMALL

VIEWS = {
    "all_orders": "SELECT id, user, amount FROM orders",
    "by_user": "SELECT user, count(*) AS n, sum(amount) AS total FROM orders GROUP BY user",
    "prices_of": "SELECT user, count(*) AS n, sum(factor) AS total FROM prices GROUP BY user",
    "priced": "SELECT o.user, count(*) AS n, sum(o.amount * p.factor) AS total FROM orders o "
    "JOIN prices p ON o.user = p.user GROUP BY o.user",
}
_INTERVALS_S = {"all_orders": 2.0, "by_user": 0.0, "prices_of": 0.0}

Target: TypeAlias = sw.Delta | sw.ParquetFiles


def targets(tables: str) -> dict[str, list[Target]]:
    """View → the tables that follow it: one in Delta Lake, one of Parquet files."""
    return {
        view: [
            sw.Delta(f"{tables}/delta/{view}", interval_s=interval_s, keep_s=20),
            sw.ParquetFiles(f"{tables}/parquet/{view}", interval_s=interval_s, keep_s=20),
        ]
        for view, interval_s in _INTERVALS_S.items()
    }


def pipeline(root: str, sources: str, archive: str, tables: str, options: Mapping[str, str]) -> sw.Pipeline:
    made = sw.Pipeline("keeping", root, storage_options=options, settings=SMALL)
    made.source(
        "orders",
        f"{sources}/orders",
        format="csv",
        pattern="*.csv",
        schema="id bigint, user bigint, amount bigint",
        discovery=sw.Listing(interval_s=0.5),
        after=sw.Move(archive, keep_s=1),
    )
    made.source(
        "prices",
        f"{sources}/prices",
        format="csv",
        pattern="*.csv",
        schema="user bigint, factor bigint",
        discovery=sw.Listing(interval_s=0.5),
        # Corrections replace most files of a small source at once, and delete some.
        on_change=sw.Replace(max_removed_share=1.0, max_removed_files=1_000),
        materialize=True,
    )
    published = targets(tables)
    for name, query in VIEWS.items():
        made.view(name, query, publish=published.get(name, ()))
    return made


if __name__ == "__main__":
    root, sources, archive, tables = sys.argv[1:5]
    pipeline(root, sources, archive, tables, json.loads(os.environ["STORAGE_OPTIONS"])).run()
