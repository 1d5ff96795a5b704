"""The options of features, as the core sees them: it imports none of their classes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.extensions.companion import RunContext, companions_of
from slackwater.extensions.entry import load
from slackwater.extensions.file_action import FileAction
from slackwater.extensions.run_views import PublishedView, RunViews
from slackwater.extensions.table_target import TableTarget, declared, require_own_names
from state.clock import SystemClock
from state.location import Location
from tests.repository import REPOSITORY


def context(root: Path) -> RunContext:
    views = RunViews([], [])
    return RunContext("flights", Location(str(root)), "run", SystemClock(), [], views, lambda: None)


def test_one_companion_serves_all_options_of_a_class_in_the_order_of_declaration(tmp_path: Path) -> None:
    alerts = [sw.Alert("view failed"), sw.Alert("run failed")]
    lineage = sw.OpenLineage(str(tmp_path / "events"))
    companions = companions_of([*alerts, lineage], context(tmp_path))
    assert [(each.name, each.ends_first) for each in companions] == [("alerts", True), ("lineage", False)]
    assert all(each.statuses == () for each in companions), "only the work on files has a status"


def test_the_work_on_files_gets_each_source_with_the_watch_of_its_places(tmp_path: Path) -> None:
    pipeline = sw.Pipeline("flights", tmp_path / "root")
    for name in ("a", "b"):
        pipeline.source(
            name, tmp_path / name, format="csv", schema="n int", after=sw.Move(str(tmp_path / f"{name}_old"))
        )
    (work,) = companions_of(pipeline._options(), context(tmp_path / "root"))
    assert [status.source for status in work.statuses] == ["a", "b"]
    assert {place.owner for place in pipeline._places()} >= {"a", "b"}


def test_a_declared_table_keeps_files_before_the_work_on_files_begins(tmp_path: Path) -> None:
    pipeline = sw.Pipeline("flights", tmp_path / "root")
    pipeline.source("a", tmp_path / "a", format="csv", schema="n int", after=sw.Delete(keep_s=0))
    table = sw.ParquetFiles(str(tmp_path / "table"))
    pipeline.view("v", "SELECT n FROM a", publish=table)
    needs = pipeline._context("run", lambda: None).views.needs
    assert needs.published == (PublishedView("v", str(table)),) and needs.reads == {"v": {"a"}}


@pytest.mark.parametrize("action", [sw.Delete(keep_s=0), sw.Move("/archive"), sw.Tag({"slackwater": "done"})])
def test_an_action_on_files_is_recognized_by_its_interface(action: FileAction) -> None:
    assert isinstance(action, FileAction) and not isinstance(action, TableTarget)
    assert action.takes_away is not isinstance(action, sw.Tag)


@pytest.mark.parametrize("target", [sw.Delta("/t"), sw.Iceberg("/t"), sw.ParquetFiles("/t")])
def test_a_table_is_recognized_by_its_interface(target: TableTarget) -> None:
    assert isinstance(target, TableTarget) and not isinstance(target, FileAction)
    (publication,) = declared("v", target, Location("/root"))
    assert publication.view == "v" and publication.table == str(target)


def test_names_are_compared_over_all_publications_of_a_class() -> None:
    catalog = {"type": "rest", "uri": "http://127.0.0.1:1"}
    tables = [table for view in "vw" for table in declared(view, sw.Iceberg("lake.v", catalog), Location("/root"))]
    with pytest.raises(sw.errors.SettingsError, match="which is also the table of view v"):
        require_own_names(tables)


def _sources() -> str:
    return "".join(file.read_text(encoding="utf-8") for file in (REPOSITORY / "slackwater").rglob("*.py"))


def test_every_entry_of_a_feature_can_be_loaded() -> None:
    entries = set(re.findall(r'\bload\("([\w.]+:\w+)"\)', _sources()))
    assert len(entries) >= 8, "the features name their entries in another form"
    assert all(callable(load(entry)) for entry in entries)


def test_every_program_of_a_worker_has_its_function() -> None:
    programs = set(re.findall(r'\bProgram\("([\w.]+)"', _sources()))
    assert len(programs) >= 3, "the rooms name their programs in another form"
    assert all(callable(load(f"{program}:run")) for program in programs)
