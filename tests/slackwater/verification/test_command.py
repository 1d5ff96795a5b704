"""Tests of the command `slackwater verify`: its output and exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from actors.formats.options import Csv
from slackwater.cli.commands.verify import _row
from slackwater.verification.verification import Outcome, ViewCheck
from spark_bridge.plans.view_definition import ViewDefinition
from state.location import Location
from tests.slackwater.cli import command
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.plugins.publish.growing_view import GrowingView, events
from tests.slackwater.verification.committed_root import CommittedRoot

_SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])


def _written(root: CommittedRoot) -> str:
    root.declare(Csv(), _SCHEMA, ViewDefinition("sums", "SELECT k, sum(n) AS n FROM t GROUP BY k"))
    root.put("a", b"k,n\nx,1\ny,2\nx,3\n")
    root.ingest({"a": 3})
    return str(root.root)


def test_equal_views_give_0_and_a_wrong_one_1_with_both_values(root: CommittedRoot) -> None:
    place = _written(root)
    ended = slackwater("verify", place, "--follow-sources", "--engine", "duckdb")
    assert ended.code == 0, ended.err
    assert f"# epoch {root.epochs[-1]}" in ended.out and "sums\tequal\tduckdb\t2\t2" in ended.out
    assert "t: duckdb reads its files" in ended.err

    root.overwrite("sums", pa.table({"k": ["x", "y"], "n": [4, 3]}))
    ended = slackwater("verify", place, "--follow-sources", "--engine", "duckdb")
    assert ended.code == 1
    assert "sums\tdifferent\tduckdb\t2\t2" in ended.out and "1 changed" in ended.out
    assert "view\ty\t3\nduckdb\ty\t2\n" in ended.out
    assert (
        slackwater("verify", place, "--follow-sources", "--engine", "duckdb", "--epoch", str(root.epochs[0])).code == 0
    )


def test_a_catalog_that_lacks_the_source_of_a_view_is_damaged(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    epoch = view.create(events(1))
    ended = slackwater("verify", view.writer.root.url, "--follow-sources", "--engine", "duckdb")
    assert ended.code == 1
    assert ended.err == (
        f"error: {tmp_path}/root: its catalog lacks the source 's', which epoch {epoch} uses: restore the root from a "
        "copy, or let the pipeline read its files into a new root\n"
    )


@pytest.mark.more
def test_json_is_one_document_and_what_cannot_be_checked_is_no_success(root: CommittedRoot) -> None:
    place = _written(root)
    root.remove("a")
    ended = slackwater("verify", place, "--follow-sources", "--json")
    assert ended.code == 1
    found = json.loads(ended.out)
    assert (found["epoch"], found["all_equal"]) == (str(root.epochs[-1]), False)
    (view,) = found["views"]
    assert (view["view"], view["outcome"], view["engine"]) == ("sums", "not checkable", None)
    assert view["files"] == [{"path": f"{root.raw.url}/a", "problem": "deleted"}]


def test_an_equal_view_is_not_told_with_the_error_of_an_engine_that_left_it_to_the_other() -> None:
    left = ViewCheck("v", Outcome.EQUAL, "spark", 5, 1, 1, reason="duckdb: Parser Error: syntax error at or near")
    assert _row(left)["why"] == ""
    for kept in ("duckdb has another result", "the view is stale since epoch 5: x"):
        assert _row(replace(left, reason=kept))["why"] == kept
    unknown = replace(left, outcome=Outcome.NOT_CHECKABLE)
    assert _row(unknown)["why"] == left.reason


@pytest.mark.more
def test_spark_is_started_when_it_is_needed(root: CommittedRoot) -> None:
    ended = command.slackwater("verify", _written(root), "--follow-sources", "--engine", "spark", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["views"][0]["engine"] == "spark"


@pytest.mark.more
def test_wrong_arguments_are_refused(root: CommittedRoot) -> None:
    place = _written(root)
    assert slackwater("verify", place, "--follow-sources", "--engine", "polars").code == 2
    assert slackwater("verify", place, "--follow-sources", "--epoch", "soon").code == 2
    ended = slackwater("verify", place, "--follow-sources", "--app", "missing.py:pipeline")
    assert ended.code == 2 and "there is no file missing.py" in ended.err
