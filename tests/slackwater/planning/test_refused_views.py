"""Explanation of a pipeline of which some views cannot be built."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.cli.commands.explain import print_explanations
from slackwater.cli.terminal.output import Output


def test_a_view_that_cannot_be_built_is_refused_beside_the_others(
    local_spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.jsonl").write_text('{"k": 1}\n')
    pipeline = sw.Pipeline("p", root=tmp_path / "root")
    pipeline.source("t", tmp_path / "raw", format="jsonl", schema="k bigint")
    pipeline.view("good", "SELECT k, count(*) AS n FROM t GROUP BY k")
    assert print_explanations(pipeline, Output())
    pipeline.view("bad", "SELECT nope FROM t")
    assert not print_explanations(pipeline, Output())
    shown = capsys.readouterr().out
    assert "good: aggregate" in shown and "bad: refused" in shown and "nope" in shown
