"""Recovery of a root: the take-over, and the committed state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.fetching.file_progress import Ending, FileProgress
from actors.names.seen_index import Sight
from actors.protocol.counters import SourceProgress
from actors.recovery.attempt_plan import AttemptPlan, RunTotals
from actors.recovery.recovery import check
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import FilePolicy
from state.errors import DefinitionChangedError, FencedError
from state.lance.lance_store import LanceStateStore
from state.tables.fingerprint import path_fingerprint
from state.tables.records import EpochCounts, EpochSeconds
from tests.actors.flow import file
from tests.actors.recovery.root_with_files import SCHEMA, commit, definition, recover, root


def test_an_attempt_begins_with_what_is_not_finished(tmp_path: Path) -> None:
    made = definition(tmp_path, "s", "t")
    commit(
        made,
        (FileProgress(file("half"), listed_epoch=3, first_epoch=4, row_offset=7, requests=1), None),
        (FileProgress(file("done"), listed_epoch=3, row_offset=9), Ending("done")),
        (FileProgress(file("empty"), listed_epoch=3), Ending("done")),
        (FileProgress(file("gone"), listed_epoch=3), Ending("vanished", "it is gone")),
        (FileProgress(file("other", source="t"), listed_epoch=3), None),
    )
    recovered = recover(definition(tmp_path, "s"))
    (half,) = recovered.unfinished
    assert (half.file, half.row_offset, half.read_to.row, half.first_epoch, half.requests, half.stored) == (
        file("half"),
        7,
        7,
        4,
        1,
        True,
    ), "the queue of a source that is not declared stays where it is"
    assert recovered.ingested == {"s"}
    paths = ("half", "done", "empty", "gone")
    without_rows = [path for path in paths if ("s", path, file(path).version) in recovered.without_rows]
    assert without_rows == ["empty", "gone"]


def test_of_finished_files_a_start_reads_the_names_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = definition(tmp_path, "s")
    done = [(FileProgress(file(f"done {n}"), listed_epoch=3, row_offset=9), Ending("done")) for n in range(20)]
    commit(made, *done, (FileProgress(file("empty"), listed_epoch=3), Ending("done")))
    read: Counter[str] = Counter()
    scan, slices = LanceStateStore.scan, LanceStateStore.slices

    def counted_scan(self: LanceStateStore, table: str, **options: Any) -> pa.Table:
        rows = scan(self, table, **options)
        read[table] += rows.num_rows
        return rows

    def counted_slices(self: LanceStateStore, table: str, **options: Any) -> Iterator[pa.Table]:
        for rows in slices(self, table, **options):
            read[table] += rows.num_rows
            yield rows

    monkeypatch.setattr(LanceStateStore, "scan", counted_scan)
    monkeypatch.setattr(LanceStateStore, "slices", counted_slices)
    assert len(recover(made).seen.indexes()["s"]) == 21
    assert (read["ledger"], read["seen"]) == (1, 21), "of the ledger only the file without rows"


def test_a_vanished_version_is_new_again_after_a_restart_and_others_are_not(tmp_path: Path) -> None:
    made = definition(tmp_path, "s")
    commit(
        made,
        (FileProgress(file("gone"), listed_epoch=3), Ending("vanished", "it is gone")),
        (FileProgress(file("gone half read"), listed_epoch=3, row_offset=2), Ending("vanished", "it is gone")),
        (FileProgress(file("bad"), listed_epoch=3), Ending("quarantined", "bad")),
    )
    seen = recover(made).seen.indexes()["s"]
    keys = [path_fingerprint("s", path) for path in ("gone", "gone half read", "bad")]
    assert seen.lookup(keys) == [None, file("gone half read").version, file("bad").version]


def test_a_vanished_version_that_was_to_replace_rows_is_still_awaited_after_a_restart(tmp_path: Path) -> None:
    plain = definition(tmp_path, "s")
    replacing = [replace(each, materialize=True, policy=FilePolicy(on_change="replace")) for each in plain.sources]
    made = replace(plain, sources=tuple(replacing))
    vanished = Ending("vanished", "it is gone", is_deleted=True)
    commit(
        made,
        (FileProgress(file("held", "1"), listed_epoch=3, row_offset=9), Ending("done")),
        (FileProgress(file("forgotten", "1"), listed_epoch=3, row_offset=9), Ending("forgotten")),
        (FileProgress(file("held", "2"), listed_epoch=4, replaces=True), vanished),
        (FileProgress(file("forgotten", "2"), listed_epoch=4, replaces=True), vanished),
    )
    index = recover(made).seen.indexes()["s"]
    keys = [path_fingerprint("s", path) for path in ("held", "forgotten")]
    versions = [file("held", "2").version, file("forgotten", "2").version]
    index.begin_listing()
    assert index.take_missing(10) == {keys[0]: versions[0]}
    assert index.show(keys, versions).tolist() == [Sight.BACK, Sight.NEW]
    others = recover(plain).seen.indexes()["s"]
    assert others.show(keys, versions).tolist() == [Sight.NEW, Sight.NEW]


def test_a_vanished_version_that_was_handed_on_again_is_read_once_after_a_restart(tmp_path: Path) -> None:
    made = definition(tmp_path, "s")
    commit(made, (FileProgress(file("back"), listed_epoch=3), Ending("vanished", "it is gone")))
    commit(made, (FileProgress(file("back"), listed_epoch=5, first_epoch=5, row_offset=4), None))
    recovered = recover(made)
    assert [(each.file.path, each.row_offset) for each in recovered.unfinished] == [("back", 4)]
    assert len(recovered.without_rows) == 0
    assert recovered.seen.indexes()["s"].lookup([path_fingerprint("s", "back")]) == [file("back").version]


def test_an_attempt_goes_on_only_while_its_run_holds_the_root(tmp_path: Path) -> None:
    made = definition(tmp_path, "s")
    first = recover(made, AttemptPlan("run"))
    again = recover(made, AttemptPlan("run", number=2, held_root=True))
    assert again.head.term == first.head.term + 1
    recover(made, AttemptPlan("other"))
    with pytest.raises(FencedError, match="taken over by the run other"):
        recover(made, AttemptPlan("run", number=3, held_root=True))
    assert root(made).open().head.run == "other"


def test_an_epoch_that_was_committed_and_not_told_is_counted(tmp_path: Path) -> None:
    made = definition(tmp_path, "s")
    commit(made, (FileProgress(file("a"), listed_epoch=1), None))
    known = recover(made).head.epoch
    commit(made, (FileProgress(file("b"), listed_epoch=1), None))
    recovered = recover(made, AttemptPlan("run", number=2, held_root=True, so_far=RunTotals(epoch=known)))
    assert [each.epoch for each in recovered.unacknowledged] == [recovered.head.epoch]
    assert recover(made).unacknowledged == [], "a first attempt has told nothing yet"


def test_what_the_ledger_says_of_each_source_is_counted(tmp_path: Path) -> None:
    made = definition(tmp_path, "s", "t")
    commit(
        made,
        (FileProgress(file("done"), listed_epoch=3, row_offset=9, rows_bad=1, bytes_read=5), Ending("done")),
        (FileProgress(file("bad"), listed_epoch=3, row_offset=2), Ending("quarantined", "bad")),
        (FileProgress(file("half"), listed_epoch=3, first_epoch=4, row_offset=7, rows_bad=2), None),
    )
    assert recover(made).finished == {
        "s": SourceProgress(done=1, quarantined=1, rows=15, rows_bad=3, bytes=5),
        "t": SourceProgress(),
    }


def test_a_check_changes_nothing_and_knows_the_schemas(tmp_path: Path) -> None:
    assert check(definition(tmp_path / "none", "s"), root(definition(tmp_path / "none", "s"))) == {"s": SCHEMA}
    assert not (tmp_path / "none").exists()
    made = definition(tmp_path, "s")
    commit(made)
    other = definition(tmp_path, "s", schema=pa.schema([("x", pa.string())]))
    recovered = recover(made)
    recovered.store.commit(
        epoch=recovered.store.head.epoch + 1,
        delta=recovered.catalog.take_delta([]),
        views={},
        counts=EpochCounts(),
        seconds=EpochSeconds(),
    )
    with pytest.raises(DefinitionChangedError, match=r"schema \(x int64\)"):
        check(other, root(other))
    assert root(made).open().head.term == recovered.head.term


@pytest.mark.parametrize(
    ("views", "decided", "closed"),
    [
        ({"v": {"a", "b"}}, {"a", "b"}, set()),
        ({"v": {"a", "b"}}, {"a"}, {"a"}),
        ({"v": {"a", "b"}}, set(), set()),
        ({"v": {"a"}, "w": {"b"}}, {"a"}, set()),
        ({"v": {"a", "b"}, "w": {"b", "c"}}, {"b", "c"}, {"b"}),
    ],
)
def test_a_source_waits_for_the_schemas_of_those_that_a_view_reads_with_it(
    tmp_path: Path, views: dict[str, set[str]], decided: set[str], closed: set[str]
) -> None:
    made = definition(tmp_path, "a", "b", "c")
    read = {name: frozenset(sources) for name, sources in views.items()}
    assert PipelineDefinition(**{**vars(made), "views": read}).closed_sources(decided) == closed
