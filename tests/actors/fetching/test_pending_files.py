"""Files of a source with an order are opened one after the other, each the first of all pending ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from actors.fetching.file_progress import FileProgress
from actors.fetching.pending_files import PendingFiles
from tests.actors.flow import AT, file


def progress(path: str, source: str = "s", second: int = 0) -> FileProgress:
    return FileProgress(
        replace(file(path, source=source), last_modified=AT + timedelta(seconds=second)), listed_epoch=1
    )


def opened(files: PendingFiles) -> str | None:
    found = files.pop({"s", "t"}, None)
    return None if found is None else found.file.path


def test_without_an_order_files_are_opened_as_they_come_and_side_by_side() -> None:
    files = PendingFiles({})
    for path in ("b", "a"):
        files.add(progress(path))
    assert (opened(files), opened(files), opened(files)) == ("b", "a", None)


def test_the_next_is_opened_when_the_one_before_is_finished() -> None:
    files = PendingFiles({"s": "name"})
    second, first = progress("b"), progress("a")
    files.add(second)
    files.add(first)
    assert (opened(files), opened(files)) == ("a", None)
    files.end(second)
    assert opened(files) is None, "another one has ended"
    files.end(first)
    assert opened(files) == "b"


def test_a_late_file_is_next() -> None:
    files = PendingFiles({"s": "name"})
    first = progress("b")
    for each in (first, progress("d")):
        files.add(each)
    assert opened(files) == "b"
    files.add(progress("c"))
    files.add(progress("a"))
    files.end(first)
    assert opened(files) == "a"


def test_by_time_files_of_one_moment_are_in_the_order_of_their_names() -> None:
    files = PendingFiles({"s": "last_modified"})
    for path, second in (("c", 1), ("b", 2), ("a", 2), ("d", 0)):
        files.add(progress(path, second=second))
    assert [each.file.path for each in files] == ["d", "c", "a", "b"]


def test_of_a_source_without_a_schema_several_are_opened() -> None:
    files = PendingFiles({"s": "name"})
    for path in ("b", "a"):
        files.add(progress(path))
    assert [files.pop(set(), None) is not None for _ in range(3)] == [True, True, False]


def test_what_is_half_read_comes_first() -> None:
    files = PendingFiles({"s": "name"})
    half_read = FileProgress(file("z"), listed_epoch=1, row_offset=3)
    for each in (progress("a"), half_read):
        files.add(each)
    assert opened(files) == "z"


def test_an_order_of_one_source_holds_no_other_up() -> None:
    files = PendingFiles({"s": "name"})
    for path, source in (("b", "s"), ("a", "s"), ("c", "t")):
        files.add(progress(path, source))
    assert [opened(files), opened(files), opened(files)] == ["a", "c", None]


def test_what_may_not_be_read_is_passed_over() -> None:
    files = PendingFiles({"s": "name"})
    for path in ("a", "b"):
        files.add(progress(path))
    found = files.pop({"s"}, lambda each: each.file.path == "b")
    assert found is not None and found.file.path == "b"


def test_files_set_aside_are_passed_over_and_come_back_in_their_order() -> None:
    files = PendingFiles({"s": "name"})
    for path, source in (("b", "s"), ("a", "s"), ("d", "t"), ("c", "t")):
        files.add(progress(path, source))
    files.set_aside(lambda each: each.file.path in ("b", "c"))
    files.add(progress("e", "t"))
    assert [each.file.path for each in files] == ["b", "c"]
    files.set_aside(None)
    assert sorted(each.file.path for each in files) == ["a", "b", "c", "d", "e"]
    assert opened(files) == "a"


def test_files_that_belong_elsewhere_are_removed_also_when_they_are_set_aside() -> None:
    files = PendingFiles({})
    for path in ("a", "b", "c"):
        files.add(progress(path))
    files.set_aside(lambda each: each.file.path != "b")
    files.retain(lambda each: each.file.path == "c")
    files.set_aside(None)
    assert [each.file.path for each in files] == ["c"]


@given(st.lists(st.sampled_from("abcdefgh"), unique=True), st.data())
def test_whatever_comes_when_the_first_of_all_that_are_known_is_opened(paths: list[str], data: st.DataObject) -> None:
    files, known = PendingFiles({"s": "name"}), list[FileProgress]()
    reading: FileProgress | None = None
    while paths or known:
        if paths and (not known or data.draw(st.booleans())):
            known.append(progress(paths.pop()))
            files.add(known[-1])
            continue
        if reading is not None:
            files.end(reading)
        reading = files.pop({"s"}, None)
        assert reading is not None
        assert reading.file.path == min(each.file.path for each in known)
        known.remove(reading)
