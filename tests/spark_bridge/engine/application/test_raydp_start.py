"""The plain start of Spark refuses at once what RayDP would wait for."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import ray

from spark_bridge.engine.application.authentication import prepare_secret, require_shared_secret
from spark_bridge.engine.application.raydp_start import RaydpStart
from spark_bridge.engine.application.session_start import ApplicationSpec
from state.errors import SparkNotStartedError
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]


class Executor:
    """In place of the executor of another application."""

    def answer(self) -> bool:
        return True


def test_executors_of_another_application_in_the_namespace_are_refused_and_live_on() -> None:
    other: Any = ray.remote(num_cpus=0)(Executor).options(name="raydp-executor-0").remote()
    assert ray.get(other.answer.remote())
    start = RaydpStart(ApplicationSpec("second", {}, 1, 1, "600m"), nullcontext)
    with pytest.raises(SparkNotStartedError, match=r"namespace 'slackwater' has executors of another application"):
        start.session()
    assert not start.is_executor("raydp-executor-0", "slackwater")
    assert ray.get(other.answer.remote())
    ray.kill(other)
    eventually(lambda: "raydp-executor-0" not in ray.util.list_named_actors())


def test_cluster_without_the_secret_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    require_shared_secret()
    monkeypatch.delenv("_SPARK_AUTH_SECRET")
    prepare_secret()
    with pytest.raises(
        SparkNotStartedError, match=r'same _SPARK_AUTH_SECRET .*configs=\{"spark.authenticate": "false"'
    ):
        require_shared_secret()
    monkeypatch.setenv("_SPARK_AUTH_SECRET", "of-all-nodes")
    require_shared_secret()
