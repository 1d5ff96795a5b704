"""The record of what was done to files after the commit."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import lance

from state.lance.handled_files import NAME, HandledFile, HandledFiles, Outcome
from state.location import Location

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)


def file(
    path: str, epoch: int = 1, outcome: Outcome = "done", source: str = "s", action: str = "delete"
) -> HandledFile:
    error = "it's refused" if outcome == "failed" else None
    return HandledFile(source, action, path, b"version1", epoch, outcome, AT, error)


def test_a_root_without_a_record_has_handled_nothing(tmp_path: Path) -> None:
    record = HandledFiles(Location(str(tmp_path)))
    assert (record.done_until("s", "delete"), record.since("s", "delete", 0)) == (0, {})
    assert (record.unfinished("s", "delete"), record.table().num_rows) == ({}, 0)
    record.append([])
    assert not (tmp_path / NAME).exists()


def test_files_and_the_epoch_are_kept_for_each_source_and_action(tmp_path: Path) -> None:
    record = HandledFiles(Location(str(tmp_path)))
    record.append([file("a'b.csv", 1)])
    record.append([file("c.csv", 2), file("d.csv", 3, source="t")], ("s", "delete", 2, AT))
    record.append([file("e.csv", 5, action='tag {"a": "b"}')])
    assert (record.done_until("s", "delete"), record.done_until("t", "delete")) == (2, 0)
    assert record.done_until("s", 'tag {"a": "b"}') == 0
    assert record.since("s", "delete", 1) == {("c.csv", b"version1"): "done"}
    assert record.table("s")["path"].to_pylist() == ["a'b.csv", "c.csv", "e.csv"]
    assert record.table("s", "a'b.csv")["outcome"].to_pylist() == ["done"]


def test_the_last_outcome_of_a_file_counts(tmp_path: Path) -> None:
    record = HandledFiles(Location(str(tmp_path)))
    record.append([file("a'b.csv", outcome="failed"), file("c.csv", outcome="failed")])
    assert sorted(path for path, _ in record.unfinished("s", "delete")) == ["a'b.csv", "c.csv"]
    record.append([file("a'b.csv")])
    assert record.unfinished("s", "delete") == {("c.csv", b"version1"): "failed"}


def test_a_long_record_has_few_files(tmp_path: Path) -> None:
    record = HandledFiles(Location(str(tmp_path)))
    for number in range(140):
        record.append([file(f"{number}.csv", number)])
    dataset = lance.dataset(str(tmp_path / NAME))
    assert len(dataset.get_fragments()) <= 65
    assert record.table()["epoch"].to_pylist() == list(range(140))


def test_deletions_are_read_once_also_after_a_compaction(tmp_path: Path) -> None:
    record = HandledFiles(Location(str(tmp_path)))
    assert record.deletions("s", 0) == ([], 0)
    other = [file("tagged", action='tag {"a": "b"}'), file("other", source="t"), file("left", outcome="changed")]
    record.append([replace(each, last_modified=AT) for each in (*other, file("failed", outcome="failed"))])
    position, paths = 0, []
    for number in range(80):
        action = "move to s3://archive" if number % 2 else "delete"
        outcome: Outcome = "absent" if number % 3 else "done"
        record.append([replace(file(f"{number}", outcome=outcome, action=action), last_modified=AT)])
        files, position = record.deletions("s", position)
        paths += [each.path for each in files]
        assert all((each.version, each.last_modified) == (b"version1", AT) for each in files)
    assert paths == [f"{number}" for number in range(80)]
    assert record.deletions("s", position) == ([], position)
    assert [each.path for each in record.deletions("s", 0)[0]] == paths
