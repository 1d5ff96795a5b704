"""The history of a file that is deleted and comes back, of a source whose views follow it, as the flow writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.fetching.fetch_executor import FetchExecutor
from actors.files import ChangedFile, DeletedFile, FileVersion, ForgottenFile
from actors.protocol.messages import ChangedFiles, DeletedFiles, ForgottenFiles, Message
from slackwater.reading.file_history import FileHistory, file_history
from state.location import Location
from state.tables.catalog import Catalog
from state.tables.records import CatalogSource
from tests.actors.fetching.replacing import Store, piece, staged, started
from tests.actors.flow import barrier, file, files, rows
from tests.slackwater.reading.written_root import START

FIRST, SECOND = file("a", "1"), file("a", "2")


class Flow:
    """A fetch actor and the store that its epochs are committed to."""

    def __init__(self, root: Path) -> None:
        self._store, self._root, self._fetch = Store(root), Location(str(root)), started()
        self._epochs: Iterator[int] = iter(range(1, 100))

    @property
    def fetch(self) -> FetchExecutor:
        return self._fetch

    def read(self, version: FileVersion, count: int, *, last: bool = True) -> None:
        piece(self._fetch, version, rows(count), last=last)

    def read_in_place(self, version: FileVersion, count: int) -> None:
        piece(self._fetch, version, rows(count))
        staged(self._fetch, version)

    def epoch(self, *messages: Message) -> None:
        """An epoch that begins with these."""
        for message in messages:
            self._fetch.on_message(message, 0.0)
        epoch = next(self._epochs)
        self._store.commit(epoch, self._fetch.on_message(barrier(epoch), 0.0))

    def history(self) -> FileHistory:
        definition = json.dumps({"url": "s3://raw", "format": {"name": "csv"}, "pattern": "**"})
        catalog = Catalog(sources={"s": CatalogSource("s", definition, None)})
        return file_history("s3://raw/a", self._root, self._store.store, catalog, None, START)


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    """A file of two rows, of which epoch 1 has seen the end."""
    made = Flow(tmp_path / "root")
    made.fetch.on_message(files("a"), 0.0)
    made.read(FIRST, 2)
    made.epoch()
    return made


def gone(version: FileVersion) -> DeletedFiles:
    return DeletedFiles((DeletedFile("s", "a", version.version),))


def back(before: FileVersion, now: FileVersion) -> ChangedFiles:
    return ChangedFiles((ChangedFile(before.version, now),))


def test_a_file_that_is_gone_took_its_rows_along(flow: Flow) -> None:
    flow.epoch(gone(FIRST))
    history = flow.history()
    assert (history.status, history.epochs["deleted_epoch"], history.epochs["removed_epoch"]) == ("forgotten", 2, 2)
    first, second = history.text.splitlines()
    assert first.startswith("s3://raw/a was deleted, seen at epoch 2 (")
    assert first.endswith("), and its rows left the views with it; 2 rows of it were in the views.")
    assert second == "When it is back, it is read again."


def test_the_same_version_that_is_back_is_read_again_and_then_simply_there(flow: Flow) -> None:
    flow.epoch(gone(FIRST))
    flow.epoch(back(FIRST, FIRST))
    assert flow.history().text.splitlines()[1:] == [
        "It is back, and is read again: its rows are added to the views when all of it is read."
    ]
    flow.read_in_place(FIRST, 2)
    flow.epoch()
    history = flow.history()
    assert history.status == "done" and history.text.count("\n") == 0
    assert history.text.startswith("s3://raw/a was read to its end at epoch 4 (") and history.text.endswith(
        "): 2 rows."
    )
    flow.epoch(gone(FIRST))
    assert flow.history().text.startswith("s3://raw/a was deleted, seen at epoch 5 (")


def test_another_version_that_is_back_has_a_line_of_its_own(flow: Flow) -> None:
    flow.epoch(gone(FIRST))
    flow.epoch(back(FIRST, SECOND))
    old, new, then, count = flow.history().text.splitlines()
    assert then == "It is back, and is read again: its rows are added to the views when all of it is read."
    assert (
        old.startswith("s3://raw/a was deleted, seen at epoch 2 (")
        and "has been waiting to be read since epoch 3" in new
    )
    assert "2 versions of it were listed" in count
    flow.read_in_place(SECOND, 5)
    flow.epoch()
    history = flow.history()
    assert history.status == "done" and "was read to its end at epoch 4 " in history.text.splitlines()[1]
    assert "is back" not in history.text and "in place of these" not in history.text
    flow.epoch(back(SECOND, file("a", "3")))
    assert "come in place of these when that is done" in flow.history().text


def test_a_file_that_goes_while_it_is_read_takes_its_rows_along(tmp_path: Path) -> None:
    flow = Flow(tmp_path / "root")
    flow.fetch.on_message(files("a"), 0.0)
    flow.read(FIRST, 3, last=False)
    flow.epoch()
    flow.epoch(gone(FIRST))
    assert "was deleted, seen at epoch 2 (" in flow.history().text
    assert "its rows left the views with it; 3 rows of it were in the views." in flow.history().text


def test_what_was_forgotten_by_command_is_told_so_whether_it_goes_then_or_not(flow: Flow) -> None:
    flow.epoch(ForgottenFiles((ForgottenFile("s", "a"),)))
    told = flow.history().text
    assert told.startswith("s3://raw/a was forgotten at epoch 2 (")
    assert told.endswith("and is not read again by itself; 2 rows of it were in the views.")
    flow.epoch(gone(FIRST))
    later = flow.history().text
    assert later.startswith(f"{told} It was deleted, seen at epoch 3 (") and "When it is back" not in later
