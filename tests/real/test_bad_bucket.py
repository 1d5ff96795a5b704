"""Everything that can be wrong with the objects of a bucket, in one run: all else is read."""

from __future__ import annotations

import gzip
import random
import struct
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.testing.proxies.fault_proxy import FaultProxy
from slackwater.testing.servers.s3_server import S3Server
from state.places.marker import MARKER
from tests.real.event_pipeline import FAST
from tests.real.events import events, parquet

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

SCHEMA = "user bigint, amount double"
GOOD = parquet(events(0, 5))
ODD_NAMES = ["a b.parquet", "100%.parquet", "#1.parquet", "x+y&z.parquet", "ü/日本.parquet", "%41.parquet"]
MANY = [f"day=1/{number:04}.parquet" for number in range(30)]
PARQUET = {
    "truncated.parquet": GOOD[:-20],
    "magic.parquet": b"RAP1" + GOOD[4:-4] + b"RAP1",
    "footer.parquet": GOOD[:-8] + struct.pack("<I", 1 << 31) + b"PAR1",
    "other.parquet": parquet([{"user": "text", "amount": 1.0}]),
    "cold.parquet": GOOD,
    "line\nend.parquet": GOOD,
}
LINES = {
    "ragged.csv": b"user,amount\n1,1.0\n2,2.0,3\n3,3.0\n",
    "latin.csv": b"user,amount\n1,1.0\n\xff2,2.0\n3,3.0\n",
    "quote.csv": b'user,amount\n1,1.0\n2,"2.0\n3,3.0\n',
    "cut.json": b'{"user":1,"amount":1.0}\n{"user":2,"amount":2.0}\n{"user":3,"amou',
    "kind.json": b'{"user":1,"amount":1.0}\n{"user":"x","amount":2.0}\n{"user":3,"amount":3.0}\n',
}
HUGE: dict[str, Callable[[], bytes]] = {
    "bomb.csv": lambda: gzip.compress(b"user,amount\n1,1.0\n" + b"2,2.0\n" * (60 << 20), 1),
    "line.csv": lambda: pa.compress(b"user,amount\n1,1.0\n" + b"x" * (1 << 30), "zstd", asbytes=True),
}
HUGE_REASONS = {"bomb.csv": "max_expansion", "line.csv": "max_record_bytes"}


def declared(s3: S3Server, bucket: str, proxy: FaultProxy) -> sw.Pipeline:
    settings = sw.Settings(
        fetch=sw.settings.FetchSettings(num_fetchers=1, limits=sw.settings.ReadLimits(max_expansion=100))
    )
    pipeline = sw.Pipeline("bad", f"s3://{bucket}/root", storage_options=s3.storage_options, settings=settings)
    options = {"schema": SCHEMA, "discovery": FAST, "storage_options": proxy.storage_options}
    pipeline.source("parquet", f"s3://{bucket}/parquet", format="parquet", **options)  # type: ignore[arg-type]
    pipeline.source("csv", f"s3://{bucket}/csv", format="csv", **options)  # type: ignore[arg-type]
    pipeline.source("json", f"s3://{bucket}/json", format="json", **options)  # type: ignore[arg-type]
    every = " UNION ALL ".join(f"SELECT '{kind}' AS kind, user FROM {kind}" for kind in ("parquet", "csv", "json"))
    pipeline.view("counted", f"SELECT kind, count(*) AS n FROM ({every}) GROUP BY kind")
    return pipeline


@pytest.mark.more
@pytest.mark.parametrize("huge", [(), pytest.param(tuple(HUGE), marks=pytest.mark.more)], ids=["small", "huge"])
def test_whatever_is_wrong_with_some_objects_the_others_are_read_and_all_are_accounted_for(
    s3: S3Server, bucket: str, huge: tuple[str, ...]
) -> None:
    good = {f"parquet/{name}" for name in (*ODD_NAMES, *MANY)}
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda key: s3.put(bucket, key, GOOD), good))
    for name, content in {**PARQUET, "day=1/": b""}.items():
        s3.client().put_object(Bucket=bucket, Key=f"parquet/{name}", Body=content)
    for name, content in LINES.items():
        s3.put(bucket, f"{name.partition('.')[2]}/{name}", content)
    for name in huge:
        s3.put(bucket, f"csv/{name}", HUGE[name]())
    proxy = s3.fault_proxy(random.Random(1))
    proxy.on("GET", "parquet/cold.parquet").deny()
    proxy.on("LIST", "parquet/", times=1).refuse()

    report = declared(s3, bucket, proxy).run(until="caught_up")

    store = sw.open(f"s3://{bucket}/root", s3.storage_options)
    files = {row["path"].partition(f"{bucket}/")[2]: row for row in store.ledger.files().to_pylist()}
    wrong = {path: row["error"] for path, row in files.items() if row["status"] == "quarantined"}
    assert wrong.keys() == {*(f"parquet/{name}" for name in PARQUET), *(f"csv/{name}" for name in huge)}
    assert "403" in wrong["parquet/cold.parquet"] and "user" in wrong["parquet/other.parquet"]
    assert all(HUGE_REASONS[name] in wrong[f"csv/{name}"] for name in huge)
    done = {path for path, row in files.items() if row["status"] == "done"}
    assert done == good | {f"{name.partition('.')[2]}/{name}" for name in LINES}
    assert files.keys() == done | wrong.keys()

    bad = Counter(row["path"].rpartition("/")[2] for row in store.ledger.quarantine().to_pylist())
    assert bad == dict.fromkeys(LINES, 1)
    rows = {row["kind"]: row["n"] for row in store.snapshot().view("counted").to_arrow().to_pylist()}
    assert (rows["parquet"], rows["json"]) == (5 * len(good), 4)
    assert rows["csv"] == 5 if not huge else rows["csv"] > 1_000_000
    assert sum(rows.values()) == report.rows

    gets = Counter(request.key for request in proxy.requests if request.method == "GET" and not request.is_list)
    assert gets.pop(MARKER) == 3, "each source looks once for a marker above it"
    assert {path: row["requests"] for path, row in files.items() if row["requests"]} == gets
