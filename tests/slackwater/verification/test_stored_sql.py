"""`verify` runs no text of a root before it is one SELECT over the sources of its view, and follows no URL unasked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from actors.formats.options import Csv
from slackwater.verification.verification import Outcome, ViewCheck
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import UsageError
from state.location import Location
from tests.cases import few
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.verification.committed_root import CommittedRoot

_SCHEMA = pa.schema([("a", pa.string())])
_SECRET = "PLANTEDxSECRETx0123456789"
# Placeholders: a file that must not be made, and one that must not be read.
_HOSTILE = [
    "INSERT OVERWRITE DIRECTORY '{made}' USING text SELECT a FROM t",
    "FROM t INSERT OVERWRITE DIRECTORY '{made}' USING text SELECT a "
    "INSERT OVERWRITE DIRECTORY '{made}2' USING text SELECT a",
    "WITH x AS (SELECT a FROM t) INSERT OVERWRITE DIRECTORY '{made}' USING text SELECT a FROM x",
    "SELECT 1) ; COPY (SELECT 'x') TO '{made}'; SELECT * FROM (SELECT 'x' AS a",
    "SELECT a FROM t; COPY t TO '{made}'",
    "SELECT TRANSFORM(a) USING 'touch {made}' AS (a string) FROM t",
    "SELECT a FROM (SELECT TRANSFORM(a) USING 'touch {made}' AS (a string) FROM t)",
    "SELECT java_method('java.lang.System', 'setProperty', 'slackwater.pwned', 'yes') AS a FROM t",
    "SELECT reflect('java.lang.System', 'getenv', 'SLACKWATER_TEST_SECRET') AS a FROM t",
    "SELECT value AS a FROM text.`{kept}`",
    "SELECT a FROM t UNION ALL SELECT value FROM text.`{kept}`",
    "SELECT a, (SELECT max(value) FROM text.`{kept}`) AS b FROM t",
    "SELECT content AS a FROM read_text('{kept}')",
    "SELECT a FROM '{kept}'",
    "SELECT a FROM another_view_of_the_session",
    "SELECT function_of_the_session(a) AS a FROM t",
    "ADD JAR 'file://{made}.jar'",
    "CREATE TEMPORARY FUNCTION f AS 'x.Y' USING JAR 'file://{made}.jar'",
    "SET slackwater.pwned = yes",
    "ATTACH '{made}' AS x",
    "CREATE TABLE x AS SELECT a FROM t",
    "VALUES ('x')",
]


@pytest.fixture
def session(local_spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A session with a view and a function of the user, which are not for a root."""
    spark = local_spark.newSession()
    spark.createDataFrame([(_SECRET,)], "a string").createOrReplaceTempView("another_view_of_the_session")
    spark.udf.register("function_of_the_session", lambda _: _SECRET)
    # DuckDB and Python see it; the JVM has the environment of its start.
    monkeypatch.setenv("SLACKWATER_TEST_SECRET", _SECRET)
    spark._jvm.java.lang.System.clearProperty("slackwater.pwned")
    yield spark
    spark.catalog.dropTempView("another_view_of_the_session")


@pytest.mark.parametrize("engine", few(["spark", "duckdb"], "duckdb"))
def test_hostile_text_of_a_view_is_refused_before_it_runs(
    root: CommittedRoot, session: SparkSession, tmp_path: Path, engine: str
) -> None:
    made, kept = tmp_path / "made", tmp_path / "kept"
    kept.write_text(_SECRET)
    views = {f"v{number}": text.format(made=made, kept=kept) for number, text in enumerate(_HOSTILE)}
    _written(root, *views)
    for view, text in views.items():
        root.redefine(view, text)
    found = root.verify(engine=engine, spark=session)
    assert [check.view for check in found.views] == sorted(views)
    for check in found.views:
        assert check.outcome is Outcome.NOT_CHECKABLE, (views[check.view], check)
        assert check.reason.startswith(f"{engine}: "), check.reason
    assert sorted(tmp_path.iterdir()) == [kept, tmp_path / "raw", tmp_path / "root"]
    assert session._jvm.java.lang.System.getProperty("slackwater.pwned") is None
    assert _SECRET not in repr(found) and str(Path.home()) not in repr(found)


def _written(root: CommittedRoot, *views: str) -> None:
    root.declare(Csv(), _SCHEMA, *(ViewDefinition(view, query="SELECT a FROM t") for view in views or ("v",)))
    root.put("f", b"a\nx\n")
    root.ingest({"f": 1})


_ENDLESS = {
    # Native code, which ignores interruptions: the worker is killed.
    "duckdb": "SELECT levenshtein(repeat(a, 300000), repeat(a, 300000))::varchar AS a FROM t",
    "spark": "SELECT a FROM t LATERAL VIEW explode(sequence(1, 30000)) x AS p "
    "LATERAL VIEW explode(sequence(1, 30000)) y AS q WHERE p + q < 0",
}


@pytest.mark.parametrize("engine", few(["spark", "duckdb"], "duckdb"))
def test_text_that_computes_for_too_long_is_ended(root: CommittedRoot, session: SparkSession, engine: str) -> None:
    _written(root)
    root.redefine("v", _ENDLESS[engine])
    # With "auto", Spark would be asked next, and would not end either.
    choice = "auto" if engine == "duckdb" else engine
    (check,) = root.verify(engine=choice, spark=session, timeout_s=2).views
    assert (check.outcome, check.reason) == (
        Outcome.NOT_CHECKABLE,
        f"{engine}: it takes more than 2 s (--timeout)",
    )


@pytest.mark.more_after(1)
@pytest.mark.parametrize("variable", ["${system:user.home}", "${spark.app.name}"])
def test_variable_in_the_text_of_a_view_has_no_value(root: CommittedRoot, variable: str) -> None:
    _written(root)
    root.redefine("v", f"SELECT '{variable}' AS a FROM t")
    (check,) = root.verify(engine="spark").views
    assert check.differences is not None
    assert [example.expected for example in check.differences.examples if example.expected] == [{"a": variable}]


@pytest.mark.more
def test_text_of_a_view_changes_no_row_that_verify_has_read(root: CommittedRoot) -> None:
    _written(root)
    root.redefine("v", "SELECT 1); INSERT INTO t VALUES ('y'); SELECT * FROM (SELECT a FROM t")
    (check,) = root.verify(engine="duckdb").views
    assert check.outcome is Outcome.NOT_CHECKABLE and "Parser Error" in check.reason


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    "text", ["SELECT a FROM t;", "select A from T -- as it was", "SELECT t.a FROM t JOIN t u ON t.a = u.a"]
)
@pytest.mark.parametrize("engine", few(["spark", "duckdb"], "spark"))
def test_harmless_text_of_a_view_is_computed(root: CommittedRoot, text: str, engine: str) -> None:
    _written(root)
    root.redefine("v", text)
    assert root.verify(engine=engine).all_equal


@pytest.mark.more
def test_url_that_only_the_root_names_is_not_followed(root: CommittedRoot) -> None:
    _written(root)
    with pytest.raises(UsageError) as refused:
        root.verify(follow_sources=False)
    assert str(refused.value) == (
        f"the root names the places of its files (t: {root.raw}): give its pipeline (--app app.py:pipeline), or follow "
        "them (--follow-sources) if you trust the writers of the root"
    )
    ended = slackwater("verify", str(root.root), "--engine", "duckdb")
    assert ended.code == 2 and "--follow-sources" in ended.err
    assert slackwater("verify", str(root.root), "--engine", "duckdb", "--follow-sources").code == 0


@pytest.mark.more
def test_pipeline_confirms_the_url_of_its_source(root: CommittedRoot, tmp_path: Path) -> None:
    _written(root)
    assert _verified(root, root.raw).outcome is Outcome.EQUAL
    check = _verified(root, Location(str(tmp_path / "elsewhere")))
    assert check.outcome is Outcome.NOT_CHECKABLE
    assert check.reason == (
        f"source t is at {root.raw} in the root, and not in the pipeline: correct the pipeline, or follow the root "
        "(--follow-sources) if you trust its writers"
    )


def _verified(root: CommittedRoot, raw: Location) -> ViewCheck:
    pipeline = sw.Pipeline("p", root=str(root.root))
    pipeline.source("t", raw.url, format="csv", schema="a string")
    pipeline.view("v", "SELECT a FROM t")
    (check,) = root.verify(engine="duckdb", follow_sources=False, pipeline=pipeline).views
    return check
