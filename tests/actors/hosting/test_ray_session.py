"""Tests of the Ray that a run starts: it has the parts that the run needs, and no others."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil
import pytest
import ray

from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]


def test_ray_of_a_run_has_no_process_that_the_run_does_not_need() -> None:
    commands = []
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # one that ends just now
            commands.append(" ".join(each.cmdline()))
    assert any("gcs_server" in command for command in commands)
    assert [each for each in commands for name in ("monitor.py", "dashboard.py") if name in each] == []


def test_a_signal_to_the_group_of_a_run_leaves_ray_alone() -> None:
    groups = {each.name(): os.getpgid(each.pid) for each in psutil.Process().children()}
    assert {"gcs_server", "raylet"} <= groups.keys()
    assert os.getpgrp() not in (groups["gcs_server"], groups["raylet"])


def test_workers_of_a_run_are_forks_of_one_process() -> None:
    class Worker:
        def parent(self) -> str:
            return " ".join(psutil.Process().parent().cmdline())

    workers = [ray.remote(num_cpus=0)(Worker).remote() for _ in range(2)]
    assert all("fork_server" in parent for parent in ray.get([worker.parent.remote() for worker in workers]))


def test_lean_ray_makes_finds_and_forgets_actors() -> None:
    class Counter:
        def next(self) -> int:
            return 1

    counter = ray.remote(num_cpus=0)(Counter).options(name="counter").remote()
    assert ray.get(counter.next.remote()) == 1
    assert "counter" in ray.util.list_named_actors()
    ray.kill(counter)
    eventually(lambda: "counter" not in ray.util.list_named_actors())
