"""The wait for the executors of a Spark application on Ray."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_bridge.engine.application.driver_jvm import begin_call, driver_answers
from spark_bridge.engine.application.ray_application import registered_executors
from spark_bridge.engine.session.session import is_alive


@contextmanager
def _frozen_driver() -> Iterator[None]:
    driver: int = SparkContext._gateway.proc.pid
    os.kill(driver, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(driver, signal.SIGCONT)


def test_late_answer_of_a_driver_is_not_its_end(local_spark: SparkSession) -> None:
    assert registered_executors(local_spark) == 0
    with _frozen_driver():
        assert registered_executors(local_spark) is None
    assert registered_executors(local_spark) == 0


@pytest.mark.ray
def test_one_late_answer_does_not_end_the_wait_for_an_executor(session: SparkSession) -> None:
    with _frozen_driver():
        asked = begin_call(lambda: is_alive(session, 60.0))
        # This question begins later, so both answers are late.
        assert not driver_answers(session)
    assert asked.result(60.0)
