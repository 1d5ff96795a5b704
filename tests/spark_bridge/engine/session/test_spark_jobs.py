"""Every wait for Spark ends, even if Spark does not answer."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from structlog.testing import capture_logs

from spark_bridge.engine.session import spark_jobs
from spark_bridge.engine.session.session import is_alive
from spark_bridge.engine.session.spark_errors import is_of_full_disk
from spark_bridge.engine.session.spark_jobs import SparkJobs
from state.errors import CommitRefusedError, RunFailedError, SparkLostError, StorageFullError, ViewFailedError
from tests.waiting import eventually

_PROGRAM = """if True:
    import os, signal, sys, time
    from pyspark import SparkContext
    from spark_bridge.engine.session.local_session import start_local_session
    from spark_bridge.engine.session.session import is_alive
    from spark_bridge.engine.session.settings import SparkSettings
    from spark_bridge.engine.session.spark_jobs import SparkJobs
    from spark_bridge.engine.application.spark_log import quiet_death
    from state.errors import SparkLostError

    quiet_death()
    spark = start_local_session(SparkSettings(), "deaths")
    jobs = SparkJobs(spark)
    assert is_alive(spark)
    os.kill(SparkContext._gateway.proc.pid, getattr(signal, sys.argv[1]))
    started = time.monotonic()
    try:
        jobs.run("view", "over rows", {"v": lambda: spark.range(3).count(), "w": lambda: spark.range(4).count()})
    except SparkLostError as error:
        print(str(error)[: len("view 'v': the Spark application died")], *sorted(error.views))
    print(time.monotonic() - started < 40)
    print(is_alive(spark))
    jobs.close()
"""


_DIES_BEFORE_THE_TEXT = """if True:
    import os, signal
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from spark_bridge.engine.session.local_session import start_local_session
    from spark_bridge.engine.session.settings import SparkSettings
    from spark_bridge.engine.session.spark_jobs import SparkJobs
    from spark_bridge.engine.application.spark_log import quiet_death
    from state.errors import SparkLostError

    quiet_death()
    spark = start_local_session(SparkSettings(), "deaths")
    jobs, driver = SparkJobs(spark), SparkContext._gateway.proc

    def failing():
        try:
            spark._jvm.java.util.Optional.empty().get()
        except Py4JError:
            os.kill(driver.pid, signal.SIGKILL)
            driver.wait()
            raise

    try:
        jobs.run("view", "over rows", {"v": failing})
    except SparkLostError as error:
        print(error, *error.views)
    jobs.close()
"""

_TOO_MANY_ROWS = """if True:
    import pyarrow as pa
    from spark_bridge.engine.application.spark_log import quiet_death
    from spark_bridge.engine.catalyst.arrow_frames import frame_of_table
    from spark_bridge.engine.session.local_session import start_local_session
    from spark_bridge.engine.session.settings import SparkSettings
    from spark_bridge.engine.session.spark_jobs import SparkJobs
    from state.errors import SparkLostError

    quiet_death()
    spark = start_local_session(SparkSettings(driver_memory="512m"), "memory")
    jobs = SparkJobs(spark)
    rows = pa.table({"n": pa.nulls(64_000_000, pa.int64()).fill_null(7)})
    try:
        jobs.run("view", "over rows", {"v": lambda: frame_of_table(spark, rows).count()})
    except SparkLostError as error:
        print(error)
    jobs.close()
"""


def _run_alone(place: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program whose JVM dies, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )


@pytest.mark.more
@pytest.mark.parametrize("signal", ["SIGKILL", pytest.param("SIGSTOP", marks=pytest.mark.more)])
def test_work_in_a_dead_or_frozen_jvm_ends_as_a_lost_application(signal: str, tmp_path: Path) -> None:
    done = _run_alone(tmp_path, _PROGRAM, signal)
    assert done.stdout.splitlines() == ["view 'v': the Spark application died v w", "True", "False"], done.stderr
    assert done.stderr == "", "py4j prints nothing on the terminal"


@pytest.mark.more
def test_a_driver_that_dies_before_its_error_is_read_is_a_lost_application(tmp_path: Path) -> None:
    """The text of a Java exception is in the JVM."""
    done = _run_alone(tmp_path, _DIES_BEFORE_THE_TEXT)
    assert done.stdout == (
        "view 'v': the Spark application died (Py4JJavaError); start a new one, and the run continues from the last "
        "epoch v\n"
    ), done.stderr


@pytest.mark.more
def test_a_driver_without_memory_is_a_lost_application_and_not_silence(tmp_path: Path) -> None:
    done = _run_alone(tmp_path, _TOO_MANY_ROWS)
    assert done.stdout == (
        "view 'v': the Spark application died: its driver ran out of memory; give it more "
        "(SparkSettings.driver_memory), start a new one, and the run continues from the last epoch\n"
    ), done.stderr
    assert done.stderr == ""


def test_an_error_of_memory_names_the_views_that_were_computed(local_spark: SparkSession) -> None:
    jobs, is_begun, go_on = SparkJobs(local_spark), threading.Event(), threading.Event()

    def other() -> int:
        is_begun.set()
        go_on.wait(60)
        return 1

    def without_memory() -> None:
        assert is_begun.wait(60)
        raise MemoryError

    def release() -> None:
        eventually(lambda: bool(jobs._computing._at_death))
        go_on.set()

    releasing = threading.Thread(target=release)
    releasing.start()
    with pytest.raises(RunFailedError) as failed:
        jobs.run("view", "over rows", {"v": without_memory, "w": other})
    releasing.join()
    assert not isinstance(failed.value, ViewFailedError)
    assert failed.value.views == {"v", "w"}
    jobs.close()


@pytest.mark.more
def test_failed_job_on_a_living_application_is_not_a_lost_one(local_spark: SparkSession) -> None:
    jobs = SparkJobs(local_spark)
    wet = local_spark.range(3).selectExpr("raise_error('too wet')")
    with pytest.raises(ViewFailedError, match=r"^view 'v' failed over rows: .*too wet$") as failed:
        jobs.run("view", "over rows", {"v": wet.collect})
    assert not isinstance(failed.value, SparkLostError)
    assert is_alive(local_spark)
    jobs.close()


@pytest.mark.more
def test_full_scratch_disk_is_no_fault_of_the_rows(local_spark: SparkSession) -> None:
    jobs = SparkJobs(local_spark)

    def of_java() -> None:
        jvm: Any = local_spark._jvm
        jvm.java.nio.file.Files.copy(
            jvm.java.io.File("/proc/version").toPath(), jvm.java.io.FileOutputStream("/dev/full")
        )

    def of_python() -> None:
        def written(number: int) -> int:
            with open("/dev/full", "w") as file:
                return file.write(str(number))

        local_spark.range(3).select(F.udf("bigint")(written)("id")).collect()

    for full in (of_java, of_python):
        with pytest.raises(
            StorageFullError, match=r"^view 'v': the disk of Spark's scratch directories is full: make room"
        ):
            jobs.run("view", "over rows", {"v": full})
    jobs.close()


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    "text",
    [
        "No space left on device",
        "ERROR java.io.IOException: No space left on device",
        "Lost task (TID 1) (host executor 1): java.io.IOException: No space left on device",
        "Lost task (TID 1) (host executor 1): TaskKilled",
        "Lost task (TID 1) (host executor 1): ExecutorLostFailure",
    ],
)
def test_words_in_a_row_do_not_end_the_run(local_spark: SparkSession, text: str) -> None:
    jobs = SparkJobs(local_spark)
    rows = local_spark.createDataFrame([(text,)], "s string")
    with pytest.raises(ViewFailedError, match=r"^view 'v' failed over rows: "):
        jobs.run("view", "over rows", {"v": rows.selectExpr("raise_error(s)").collect})
    jobs.close()


@pytest.mark.parametrize(
    ("message", "is_full"),
    [
        ("(TID 5) (10.0.0.1 executor 1): java.io.IOException: No space left on device", True),
        ("(TID 5) (host executor 1): java.io.FileNotFoundException: /tmp/a (No space left on device)", True),
        (
            "(TID 5) (host executor 1): org.apache.spark.SparkException: Task failed\n\tat a.B.c(D.scala:1)\n"
            "Caused by: java.io.IOException: No space left on device",
            True,
        ),
        ("(TID 5) (host executor 1): java.lang.RuntimeException: java.io.IOException: No space left on device", False),
    ],
)
def test_a_full_disk_of_an_executor_is_known_by_the_class_that_spark_names(
    local_spark: SparkSession, message: str, is_full: bool
) -> None:
    jvm: Any = local_spark._jvm
    lost = "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times: Lost task 0.3 in stage 1.0 " + message
    failed = jvm.org.apache.spark.SparkException(lost)
    assert is_of_full_disk(Py4JJavaError("a call failed", failed)) == is_full


def test_error_of_the_work_itself_is_raised_when_the_rest_has_finished(local_spark: SparkSession) -> None:
    jobs = SparkJobs(local_spark)
    finished: list[int] = []

    def refused() -> int:
        raise CommitRefusedError("another process")

    def counted() -> int:
        finished.append(int(local_spark.range(5).count()))
        return finished[-1]

    with pytest.raises(CommitRefusedError):
        jobs.run("view", "over rows", {"refused": refused, "counted": counted})
    assert finished == [5]
    assert jobs.run("view", "over rows", {"counted": counted}) == {"counted": 5}
    jobs.close()


def test_work_that_takes_long_is_reported_with_the_name_of_its_view(
    local_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_jobs, "_LOOK_S", 0.05)
    monkeypatch.setattr(spark_jobs, "_LONG_S", 0.1)
    jobs, go_on = SparkJobs(local_spark), threading.Event()
    with capture_logs() as logs:
        work = threading.Thread(target=jobs.run, args=("view", "over rows", {"slow": go_on.wait, "quick": lambda: 1}))
        work.start()
        eventually(lambda: len(logs) >= 2)
        go_on.set()
        work.join()
    assert {(each["event"], each["kind"], *each["names"], each["doing"]) for each in logs} == {
        ("work takes long", "view", "slow", "over rows")
    }
    jobs.close()
