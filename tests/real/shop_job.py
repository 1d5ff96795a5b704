"""Orders, customers, their states, and regions, as a program of its own: `python shop_job.py DIRECTORY [for ever]`."""

from __future__ import annotations

import sys
from pathlib import Path

import slackwater as sw

JOINED = "orders o JOIN customers c ON o.customer = c.id LEFT JOIN regions r ON c.region = r.region"
VIEWS = {
    "by_region": "SELECT r.name, count(*) AS n, sum(amount) AS total, max(amount) AS most "
    f"FROM {JOINED} GROUP BY r.name",
    "sizes": "SELECT n % 7 AS kind, count(*) AS regions, sum(total) AS total FROM by_region GROUP BY n % 7",
    "rows": f"SELECT o.id, r.name FROM {JOINED} WHERE amount > 50",
    "unknown": "SELECT id, customer FROM orders o WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer)",
    "latest": "SELECT customer, id, amount, running FROM (SELECT *, row_number() OVER (PARTITION BY customer "
    "ORDER BY id DESC) AS place, sum(amount) OVER (PARTITION BY customer ORDER BY id) AS running FROM orders) "
    "WHERE place <= 2",
    "places": "SELECT name, customer, total, rank() OVER (PARTITION BY name ORDER BY total DESC) AS place FROM "
    f"(SELECT r.name, o.customer, sum(amount) AS total FROM {JOINED} GROUP BY r.name, o.customer)",
    "by_state": "SELECT state, count(*) AS n, max(step) AS latest FROM states GROUP BY state",
    "open": "SELECT s.customer, c.region FROM states s JOIN customers c ON s.customer = c.id WHERE s.state = 'open'",
}
REGIONS = 8
SETTINGS = sw.Settings(
    barrier=sw.settings.BarrierSettings(interval_s=0.2, max_epoch_bytes=16 * 1024),
    recovery=sw.settings.RecoverySettings(suspicious_within_s=0.1),
    fetch=sw.settings.FetchSettings(piece_bytes=1024, max_files_waiting=20),
)


def pipeline(place: Path) -> sw.Pipeline:
    made = sw.Pipeline("shop", place / "root", settings=SETTINGS)
    often = sw.Listing(interval_s=0.3)
    schema = "id bigint, customer bigint, amount bigint"
    made.source("orders", place / "orders", format="parquet", discovery=often, schema=schema, materialize=True)
    made.source(
        "states",
        place / "states",
        format="json",
        discovery=often,
        schema="customer bigint, state string, step bigint, op string",
        materialize=True,
        key=sw.Key("customer", order_by="step", deleted="op = 'D'"),
    )
    made.table("customers", place / "customers", format="csv", discovery=often, schema="id bigint, region bigint")
    made.table("regions", [{"region": each, "name": f"first {each}"} for each in range(REGIONS)])
    for name, query in VIEWS.items():
        made.view(name, query)
    return made


if __name__ == "__main__":
    pipeline(Path(sys.argv[1])).run(until=None if sys.argv[2:] else "caught_up")
