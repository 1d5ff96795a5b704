"""A pipeline over files of events with a view of totals per user, and the totals that are expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import slackwater as sw
from slackwater.testing.proxies.fault_proxy import FaultProxy
from tests.real.ledger_oracle import LedgerOracle

TOTALS = "SELECT user, count(*) AS n, sum(amount) AS total FROM events GROUP BY user"
VIEWS = {"totals": TOTALS, "touchy": "SELECT amount FROM events"}
FAST = sw.Listing(interval_s=0.1)
ONE_FETCHER = sw.Settings(fetch=sw.settings.FetchSettings(num_fetchers=1))
"""One actor less to start; the runs on S3 have two."""


def local(tmp_path: Path, *, settings: sw.Settings = ONE_FETCHER, **options: Any) -> sw.Pipeline:
    """The pipeline in a local directory; `options` are those of its source."""
    (tmp_path / "in").mkdir(exist_ok=True)
    pipeline = sw.Pipeline("events", tmp_path / "root", settings=settings)
    pipeline.source("events", tmp_path / "in", **{"format": "parquet", "discovery": FAST, **options})
    pipeline.view("totals", TOTALS)
    return pipeline


def behind_proxy(proxy: FaultProxy, bucket: str, tmp_path: Path) -> sw.Pipeline:
    """The pipeline over the directory `in` of a bucket, whose requests go through the proxy; it restarts at once."""
    pauses = sw.settings.RecoverySettings(first_pause_s=0.01, max_pause_s=0.01)
    settings = sw.Settings(recovery=pauses, fetch=sw.settings.FetchSettings(num_fetchers=1))
    pipeline = sw.Pipeline("events", tmp_path / "root", settings=settings)
    pipeline.source(
        "events", f"s3://{bucket}/in", format="parquet", discovery=FAST, storage_options=proxy.storage_options
    )
    pipeline.view("totals", TOTALS)
    return pipeline


def totals(root: str | Path, **options: Any) -> dict[int, tuple[int, float]]:
    """Count and sum of each user, as the view has them in the last committed epoch."""
    rows = sw.open(root, **options).snapshot().view("totals").to_arrow().to_pylist()
    return {row["user"]: (row["n"], row["total"]) for row in rows}


def expected(rows: list[dict[str, Any]]) -> dict[int, tuple[int, float]]:
    """Count and sum of each user over these rows."""
    amounts: dict[int, list[float]] = {}
    for row in rows:
        amounts.setdefault(row["user"], []).append(row["amount"])
    return {user: (len(each), sum(each)) for user, each in amounts.items()}


def check_every_epoch(root: Path, scratch: Path) -> None:
    """Compares `VIEWS` with DuckDB's answers at every epoch of a root with local files."""
    oracle = LedgerOracle({"events": "parquet"}, lambda path: Path(path.removeprefix("file://")).read_bytes(), scratch)
    assert oracle.check_every_epoch(sw.open(root), VIEWS)
