"""The SQL endpoint: look-ups by key, how many a second on one core, and the memory of a life with an epoch a second.

    python -m benchmarks.serving [--groups 1000000] [--life-s 120] [--clients 10]

`slackwater serve` has one core, its clients the other.  The root has a grouped view in the form that the materializer
gives it, on a local disk; each epoch changes 1,000 groups.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.pool import Pool
from pathlib import Path
from random import Random

import psutil
import psycopg

from benchmarks.command import run_benchmark
from benchmarks.point_lookup import PER_USER
from benchmarks.publishing import MIB, VIEW, ChangingView, cpu_s
from benchmarks.result import Number, Result, Row, Table, Target
from state.location import Location

QUERY = f'SELECT n, mean FROM {VIEW} WHERE "user" = %s AND day = %s'
LATENCY, SPEED, GROWTH = Target(3, "ms"), Target(600, "look-ups/s", at_least=True), Target(1.1, "×")
IDLE, FIRST = Target(120, "MiB"), Target(50, "ms")
EVERY_S, STEADY_S = 1.0, 2.0


@contextmanager
def served(root: str) -> Iterator[tuple[psutil.Process, int]]:
    """`slackwater serve` on the first core, with its port."""
    command = [sys.executable, "-m", "slackwater", "serve", root, "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            told = server.stdout.readline()
            found = re.search(r":(\d+)/", told)
            if found is None:
                raise RuntimeError(f"the endpoint does not serve: {told}")
            process = psutil.Process(server.pid)
            for each in (process, *process.children()):
                each.cpu_affinity([0])
            yield process, int(found[1])
        finally:
            server.terminate()


def looked_up(port: int, groups: int, seed: int, seconds: float) -> list[float]:
    """The milliseconds of each look-up of one client, by a prepared statement."""
    psutil.Process().cpu_affinity([1])
    random, taken = Random(seed), list[float]()
    with psycopg.connect(
        f"postgresql://ann@127.0.0.1:{port}/slackwater", autocommit=True, prepare_threshold=1
    ) as client:
        until = time.perf_counter() + seconds
        while (started := time.perf_counter()) < until:
            number = random.randrange(groups)
            [row] = client.execute(QUERY, (f"user-{number // PER_USER:08}", number % PER_USER)).fetchall()
            assert row[0] is not None
            taken.append(1_000 * (time.perf_counter() - started))
    return taken


def together(pool: Pool, clients: int, port: int, groups: int, seconds: float) -> list[float]:
    """The milliseconds of the look-ups of several clients at once."""
    work = [(port, groups, seed, seconds) for seed in range(clients)]
    return sorted(each for taken in pool.starmap(looked_up, work) for each in taken)


def speed_row(name: str, taken: Sequence[float], seconds: float, server_s: float, target: Target) -> Row:
    numbers = (
        Number(taken[len(taken) // 2], "ms"),
        Number(taken[len(taken) * 95 // 100], "ms"),
        Number(len(taken) / seconds, "look-ups/s"),
        Number(1_000 * server_s / len(taken), "ms CPU"),
    )
    return Row(name, numbers, target=target)


def idle_rows(process: psutil.Process) -> tuple[Row, Row]:
    """The memory of the largest worker before its first client: resident, with shared pages in full, and private."""
    while True:
        before_s = cpu_of_all_s(process)
        time.sleep(STEADY_S)
        # The spare worker still starts when the first one is ready.
        if cpu_of_all_s(process) - before_s < STEADY_S / 100:
            break
    held = [each.memory_full_info() for each in process.children()]
    resident, private = max(each.rss for each in held) / MIB, max(each.uss for each in held) / MIB
    return (
        Row("an idle worker, resident", (Number(resident, "MiB"),), target=IDLE),
        Row("an idle worker, private", (Number(private, "MiB"),)),
    )


def first_row(port: int, connections: int = 50) -> Row:
    """The time from the start of a connection to its first answer, in the median."""
    taken = []
    for _ in range(connections):
        started = time.perf_counter()
        with psycopg.connect(f"postgresql://ann@127.0.0.1:{port}/slackwater", autocommit=True) as client:
            client.execute("SELECT 1").fetchone()
        taken.append(1_000 * (time.perf_counter() - started))
    middle = sorted(taken)[connections // 2]
    return Row("the first answer of a connection", (Number(middle, "ms"),), target=FIRST)


def memory_mib(process: psutil.Process) -> float:
    """The memory of the server and its workers, without pages that they share."""
    return float(sum(each.memory_full_info().uss for each in (process, *process.children()))) / MIB


def cpu_of_all_s(process: psutil.Process) -> float:
    """Seconds of CPU of the server and its workers."""
    return sum(cpu_s(each) for each in (process, *process.children()))


def measure_life(
    pool: Pool, view: ChangingView, process: psutil.Process, port: int, options: argparse.Namespace
) -> Row:
    """Clients that look groups up while epochs come; the memory of the server after a tenth of it, and at the end."""
    over, held = threading.Event(), list[float]()

    def change() -> None:
        while not over.is_set():
            started = time.perf_counter()
            view.change()
            held.append(memory_mib(process))
            over.wait(max(0.0, EVERY_S - (time.perf_counter() - started)))

    thread = threading.Thread(target=change)
    thread.start()
    taken = together(pool, options.clients, port, options.groups, options.life_s)
    over.set()
    thread.join()
    tenth = max(1, len(held) // 10)
    early = sorted(held[tenth : 2 * tenth])
    late = sorted(held[-tenth:])
    before, after = early[len(early) // 2], late[len(late) // 2]
    numbers = (
        Number(taken[len(taken) * 95 // 100], "ms"),
        Number(len(held)),
        Number(before, "MiB"),
        Number(after, "MiB"),
    )
    return Row(f"{options.clients} clients, {options.life_s:g} s", numbers, after / before, GROWTH)


def measure(options: argparse.Namespace) -> Result:
    with tempfile.TemporaryDirectory() as directory, multiprocessing.get_context("spawn").Pool(options.clients) as pool:
        view = ChangingView(Location(str(Path(directory) / "root")), options.groups)
        rows = []
        with served(view.root.url) as (process, port):
            starts = (*idle_rows(process), first_row(port))
            together(pool, 1, port, options.groups, 2)
            for clients, target in ((1, LATENCY), (4, SPEED)):
                before_s = cpu_of_all_s(process)
                taken = together(pool, clients, port, options.groups, options.seconds)
                name = "one client" if clients == 1 else f"{clients} clients"
                rows.append(speed_row(name, taken, options.seconds, cpu_of_all_s(process) - before_s, target))
            life = measure_life(pool, view, process, port, options)
    caption = f"Look-ups by key among {options.groups:,} groups, the server on one core"
    lived = f"An epoch every {EVERY_S:g} s beside the look-ups"
    return Result(
        (
            Table(("p50", "p95", "together", "of the server, each"), tuple(rows), caption=caption),
            Table(("measured",), starts, caption="Before the look-ups"),
            Table(("p95", "epochs", "memory after a tenth", "at the end"), (life,), "growth", lived),
        )
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--groups", type=int, default=1_000_000)
    arguments.add_argument("--seconds", type=float, default=10, help="of each speed")
    arguments.add_argument("--life-s", type=float, default=120)
    arguments.add_argument("--clients", type=int, default=10)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
