"""The wait for the executors of a Spark application on Ray."""

from __future__ import annotations

import os
import signal

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_bridge.engine.application.driver_jvm import begin_call, driver_answers
from spark_bridge.engine.session.session import is_alive

pytestmark = pytest.mark.ray


def test_one_late_answer_does_not_end_the_wait_for_an_executor(session: SparkSession) -> None:
    driver: int = SparkContext._gateway.proc.pid
    os.kill(driver, signal.SIGSTOP)
    try:
        asked = begin_call(lambda: is_alive(session, 60.0))
        # This question begins later, so both answers are late.
        assert not driver_answers(session)
    finally:
        os.kill(driver, signal.SIGCONT)
    assert asked.result(60.0)
