"""A program of its own, whose views kill its Spark: a run with a healthy view, and two that kill processes on one row.

    python -m tests.real.killing_job DIRECTORY

Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

import slackwater as sw
from tests.real.event_pipeline import FAST, TOTALS, totals
from tests.real.events import events, parquet, write
from tests.waiting import eventually

PLACE, DRIVER = Path(sys.argv[1]), os.getpid()
MENDED = str(PLACE / "mended")
PAUSES = sw.settings.RecoverySettings(first_pause_s=0.01, max_pause_s=0.01)


def killing(kind: str, user: int) -> int:
    """The user, unless that is 13: then the processes of a kind die, as by a crash of a library in them."""
    from tests.real import victims

    if user == 13 and not os.path.exists(MENDED):
        victims.send(DRIVER, kind)
    return user


def ends_executor(events: DataFrame) -> DataFrame:
    return events.select(F.udf(lambda user: killing("spark executor", user), LongType())("user").alias("user"))


def ends_application(events: DataFrame) -> DataFrame:
    return events.select(F.udf(lambda user: killing("spark application", user), LongType())("user").alias("user"))


def run() -> dict[str, Any]:
    place, root = PLACE / "in", PLACE / "root"
    pipeline = sw.Pipeline("events", root, settings=sw.Settings(recovery=PAUSES))
    pipeline.source("events", place, format="parquet", schema="user bigint, amount double", discovery=FAST)
    pipeline.view("totals", TOTALS)
    pipeline.view(ends_executor)
    pipeline.view(ends_application)
    write(place, "0.parquet", parquet(events(0)))
    with pipeline.start() as run:
        assert run.wait(until="caught_up", timeout_s=600)
        write(place, "bad.parquet", parquet([{"user": 13, "amount": 1.0}]))
        for number in (1, 2):
            write(place, f"{number}.parquet", parquet(events(10 * number)))
        assert run.wait(until="caught_up", timeout_s=1_500)
        status = run.status()
        answer: dict[str, Any] = {
            "errors": {name: view.error for name, view in status.views.items()},
            "recoveries": status.recoveries,
            "totals": totals(root),
        }
        Path(MENDED).touch()
        for name in ("ends_executor", "ends_application"):
            run.retry_view(name)
        eventually(lambda: all(view.error is None for view in run.status().views.values()), 120)
        assert run.wait(until="caught_up", timeout_s=600)
        answer["later"] = run.status().recoveries
    snapshot = sw.open(root).snapshot()
    answer["rows"] = {name: snapshot.view(name).count_rows() for name in ("ends_executor", "ends_application")}
    answer["files"] = sorted(sw.open(root).ledger.files()["status"].to_pylist())
    return answer


if __name__ == "__main__":
    print(json.dumps(run()))
