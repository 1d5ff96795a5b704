"""A program of its own, since a process has one Spark session: epochs over RayDP while parts of Spark are killed.

    python -m tests.real.spark_deaths EMPTY_DIRECTORY [ROUNDS]

Prints one JSON object; everything else that reaches the terminal is noise that the test refuses.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import lance
import psutil
import pyarrow as pa
import ray
from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType
from ray.exceptions import RayError

from actors.protocol.blocks import Block
from spark_bridge.engine.application.java import prepare_java
from spark_bridge.engine.session.session import is_alive, start_session, stop_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import RunFailedError, SparkLostError
from state.lance import view_dataset
from state.location import Location
from state.tables.records import CatalogView, ViewVersion
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.ray_blocks import blocks, ipc_bytes

PLACE = Path(sys.argv[1])
GATE, REACHED = str(PLACE / "gate"), str(PLACE / "reached")
SQL = {
    "grouped": "SELECT k, count(*) AS n, sum(i)::BIGINT AS s FROM rows GROUP BY k",
    "appended": "SELECT k, i FROM rows",
    "gated": "SELECT k, i, i + 1 AS next FROM rows",
}
_IN_SPARK = "SELECT k, count(*) AS n, sum(i) AS s FROM t GROUP BY k"


def next_after_gate(value: int | None) -> int | None:
    """The next number, but not while the gate is shut: so a job is surely running when something is killed."""
    import os
    import time

    while os.path.exists(GATE):
        if not os.path.exists(REACHED):
            open(REACHED, "w").close()
        time.sleep(0.01)
    return None if value is None else value + 1


after_gate: Any = udf(next_after_gate, LongType())


def gated(t: DataFrame) -> DataFrame:
    """A function view whose Python function outlives every session."""
    return t.select("k", "i", after_gate("i").alias("next"))


class Story:
    """Epochs, each checked against DuckDB, and recovery as a run does it."""

    def __init__(self) -> None:
        self.root = Location(str(PLACE / "root"))
        self.chance = random.Random(4)
        self.rows = SCHEMA.empty_table()
        self.views: dict[str, ViewVersion] = {}
        self.catalog: dict[str, CatalogView] = {}
        self.epoch, self.term, self.applications = 0, 1, 0
        self.wrong: list[str] = []
        self.open()

    def open(self) -> None:
        """A new application, and every view at its recorded version."""
        self.applications += 1
        self.spark = start_session(SparkSettings(executor_memory="600m"), f"deaths-{self.applications}")
        warm_up(self.spark)
        self.materializer = Materializer(self.spark, self.root)
        definitions = [
            ViewDefinition("grouped", _IN_SPARK),
            ViewDefinition("appended", "SELECT k, i FROM t"),
            ViewDefinition("gated", function=gated),
        ]
        self.materializer.declare(definitions, {"t": SCHEMA}, self.catalog)
        self.materializer.open(self.views)

    def recover(self) -> None:
        """As after every failure: the views go back to what was recorded, in a new term."""
        self.materializer.close()
        stop_session()
        self.term += 1
        self.views = {name: view_dataset.restore(self.root, each, self.term) for name, each in self.views.items()}
        self.open()

    def run(self, new: pa.Table, pieces: list[Block] | None = None) -> None:
        """One epoch."""
        done = self.materializer.run_epoch(self.epoch + 1, {"t": pieces or blocks(new, 2)})
        self.epoch += 1
        self.views = dict(done.views)
        self.catalog |= {view.name: view for view in done.created}
        self.rows = pa.concat_tables([self.rows, new])

    def check(self, moment: str) -> None:
        """Every view is DuckDB's answer over the rows so far."""
        rows = self.rows  # noqa: F841  (DuckDB finds it by its name)
        for name, version in self.views.items():
            stored = lance.dataset(self.root.child(version.path).lance_uri, version=version.version).to_table()
            expected = duckdb.sql(SQL[name]).to_arrow_table()
            if texts(stored.select(expected.column_names)) != texts(expected):
                self.wrong.append(f"{name} after {moment}")


def texts(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


def pid_of(actor_class: str) -> int:
    """The process of the one living Ray actor of a class."""
    actors = ray._private.state.actors().values()
    (pid,) = [a["Pid"] for a in actors if a["ActorClassName"].endswith(actor_class) and a["State"] == "ALIVE"]
    return int(pid)


def driver_pid() -> int:
    return int(SparkContext._gateway.proc.pid)


def killed_inside(story: Story, pid: int, signal_number: int = signal.SIGKILL) -> tuple[float, Exception | None]:
    """Runs an epoch, kills a process while its job computes, and gives the seconds from the kill to the end.

    Args:
        story: the epochs.
        pid: the process.
        signal_number: the signal.
    """
    Path(REACHED).unlink(missing_ok=True)
    Path(GATE).touch()
    killed_at: list[float] = []

    def kill() -> None:
        while not os.path.exists(REACHED):
            time.sleep(0.01)
        os.kill(pid, signal_number)
        killed_at.append(time.monotonic())
        Path(GATE).unlink()

    killer = threading.Thread(target=kill)
    killer.start()
    error: Exception | None = None
    try:
        story.run(random_rows(story.chance, 60))
    except RunFailedError as raised:
        error = raised
    ended = time.monotonic()
    killer.join()
    return ended - killed_at[0], error


def no_room() -> str:
    """What a start says when every CPU is taken."""
    taker = ray.remote(num_cpus=2)(Taker).remote()
    ray.get(taker.ready.remote())
    try:
        start_session(SparkSettings(start_timeout_s=2), "deaths-no-room")
        return "started"
    except RunFailedError as error:
        return str(error)
    finally:
        ray.kill(taker)


class Taker:
    def ready(self) -> bool:
        return True


class Owner:
    def put(self, tables: list[pa.Table]) -> list[Any]:
        return [ray.put(ipc_bytes(table)) for table in tables]


def is_there(ref: Any) -> bool:
    """Whether Ray still gives an object."""
    try:
        ray.get(ref, timeout=10)
        return True
    except RayError:
        return False


def lost_rows(story: Story) -> str:
    """What an epoch says whose rows went with the actor that had read them."""
    new = random_rows(story.chance, 20)
    owner = ray.remote(num_cpus=0)(Owner).remote()
    (ref,) = ray.get(owner.put.remote([new]))
    ray.kill(owner)
    # An epoch of few rows may else be quicker than the news.
    while is_there(ref):
        time.sleep(0.05)
    try:
        story.run(new, [Block("test", "t", ref, new.num_rows, new.nbytes)])
        return "ran"
    except RunFailedError as error:
        return f"{type(error).__name__}: {error}"


def rounds(story: Story, deaths: Mapping[str, Callable[[], int]], times: int) -> dict[str, list[dict[str, Any]]]:
    """Kills each in turn, recovers, and goes on."""
    seen: dict[str, list[dict[str, Any]]] = {name: [] for name in deaths}
    for _ in range(times):
        for name, pid in deaths.items():
            how = signal.SIGSTOP if name == "frozen driver" else signal.SIGKILL
            noticed_s, error = killed_inside(story, pid(), how)
            lost = isinstance(error, SparkLostError)
            alive = is_alive(story.spark)
            started = time.monotonic()
            if error is not None:
                story.recover()
            recovered_s = time.monotonic() - started
            story.check(f"{name}, recovered")
            story.run(random_rows(story.chance, 60))
            story.check(f"{name}, an epoch later")
            seen[name].append(
                {"lost": lost, "alive": alive, "noticed_s": round(noticed_s, 2), "recovered_s": round(recovered_s, 2)}
            )
    return seen


def main() -> None:
    # Ray forks to start its processes, which at once become others.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    prepare_java()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    refused = no_room()
    story = Story()
    story.run(random_rows(story.chance, 60))
    story.check("the first epoch")
    deaths: dict[str, Callable[[], int]] = {
        "executor": lambda: pid_of("RayDPExecutor"),
        "driver": driver_pid,
    }
    times = 1
    if len(sys.argv) > 2:
        times = int(sys.argv[2])
        deaths |= {"frozen driver": driver_pid}
    seen = rounds(story, deaths, times)
    lost = lost_rows(story)
    story.run(random_rows(story.chance, 20))
    story.check("lost rows")
    story.materializer.close()
    started = time.monotonic()
    stop_session()
    stopped_s = time.monotonic() - started
    java = [each for each in psutil.Process().children(recursive=True) if each.name() == "java"]
    # Ray forgets an actor before the process has quite ended.
    _, left = psutil.wait_procs(java, timeout=10)
    ray.shutdown()
    answer = {
        "refused": refused,
        "deaths": seen,
        "lost": lost,
        "wrong": story.wrong,
        "epochs": story.epoch,
        "left": [each.pid for each in left],
        "stopped_s": round(stopped_s, 2),
    }
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
