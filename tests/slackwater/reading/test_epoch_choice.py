from __future__ import annotations

from datetime import timedelta

import pytest

from slackwater.reading.store import Store
from slackwater.reading.store import open as open_store
from state.errors import EpochExpiredError, UsageError
from tests.slackwater.reading.written_root import WrittenRoot


@pytest.fixture
def store(written: WrittenRoot) -> Store:
    return open_store(str(written.root))


def test_an_epoch_is_named_by_its_distance_from_the_latest(store: Store, written: WrittenRoot) -> None:
    for back in (1, 2, 3):
        assert store.snapshot(f"-{back}").epoch == store.snapshot(-back).epoch == written.epochs[-1 - back]
    for epoch in ("-4", -4, "-999999"):
        with pytest.raises(EpochExpiredError, match="counted from the latest, was never committed or is no longer"):
            store.snapshot(epoch)


def test_an_epoch_is_named_by_the_number_that_the_table_of_epochs_has(store: Store, written: WrittenRoot) -> None:
    rows = store.epochs().to_pylist()
    assert len({row["number"] for row in rows}) == len(written.epochs)
    for row in rows:
        assert store.snapshot(f"#{row['number']}").epoch == row["epoch"]
    with pytest.raises(EpochExpiredError, match="epoch #9999 was never committed or is no longer retained"):
        store.snapshot("#9999")


@pytest.mark.more
def test_the_time_of_a_commit_finds_it_as_it_is_shown_in_seconds_or_parts(store: Store, written: WrittenRoot) -> None:
    for record in written.records:
        at = record.committed_at
        for text in (f"{at:%Y-%m-%d %H:%M:%S}", at.isoformat(timespec="milliseconds"), at.isoformat()):
            assert store.snapshot(text).epoch == store.snapshot(as_of=text).epoch == record.epoch
        with pytest.raises(EpochExpiredError):
            store.snapshot(as_of=written.records[0].committed_at - timedelta(microseconds=1))


@pytest.mark.parametrize("as_of", ["2020-01-01", "2026-01-31T11:59:59Z"])
def test_a_time_before_the_first_epoch_is_told_with_the_epochs(store: Store, as_of: str) -> None:
    with pytest.raises(EpochExpiredError, match=r"no retained epoch was committed up to 20.*there are 4 epochs from"):
        store.snapshot(as_of=as_of)


@pytest.mark.more_after(3)
@pytest.mark.parametrize("word", ["yesterday", "#", "-x", "#-1", "٣"])
def test_another_word_is_refused_with_the_ways_to_name_an_epoch(store: Store, word: str) -> None:
    with pytest.raises(UsageError, match="give its number, `latest`, -1 for the one before it"):
        store.snapshot(word)
    with pytest.raises(UsageError, match="is not a valid time: give one like 2026"):
        store.snapshot(as_of=word)
