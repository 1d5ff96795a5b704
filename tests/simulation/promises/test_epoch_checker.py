"""Each fault in terms, epochs and records breaks its promise."""

from __future__ import annotations

from dataclasses import replace

from state.tables.records import EpochRecord, Head
from tests.simulation.memory.memory_disk import MemoryVersion
from tests.simulation.promises.epoch_checker import EpochChecker
from tests.simulation.promises.store_versions import breaks, record, store_version

FIRST = store_version(Head(0, 0))
ONE, TWO = record(1), record(2)


def committed(*records: EpochRecord, term: int = 1, run: str = "run-1") -> MemoryVersion:
    """The version that commits the last of these epochs."""
    return store_version(Head(term, records[-1].epoch, run=run), records)


def checker_at(*versions: MemoryVersion, keep_epochs: int | None = None) -> EpochChecker:
    """A checker that has seen these versions."""
    checker = EpochChecker(keep_epochs)
    for number, version in enumerate(versions, 1):
        checker.check(number, version)
    return checker


def test_the_record_of_each_new_epoch_is_returned() -> None:
    checker = checker_at(FIRST)
    assert checker.check(2, committed(ONE)) == ONE
    assert checker.check(3, committed(ONE, TWO)) == TWO
    assert checker.check(4, committed(ONE, TWO, term=2, run="run-2")) is None
    assert (checker.count, checker.committed_by("run-1"), checker.committed_by("run-2")) == (2, [ONE, TWO], [])


def test_a_commit_of_an_older_term_breaks_one_writer() -> None:
    with breaks("G5", "term 1 has committed after term 2"):
        checker_at(FIRST, committed(replace(ONE, term=2), term=2), committed(replace(ONE, term=2), TWO))


def test_two_runs_of_one_term_break_one_writer() -> None:
    with breaks("G5", "run-1 and run-2 both have term 1"):
        checker_at(FIRST, committed(ONE), committed(ONE, TWO, run="run-2"))


def test_a_run_that_takes_the_root_again_breaks_one_writer() -> None:
    taken = [store_version(Head(term, 0, run=run)) for term, run in enumerate(("run-1", "run-2", "run-1"), 1)]
    with breaks("G5", "run-1 lost the root to run-2"):
        checker_at(FIRST, *taken)


def test_an_epoch_that_goes_back_breaks_monotonic() -> None:
    with breaks("G3", "epoch 1 was committed after epoch 2"):
        checker_at(FIRST, committed(record(2, state_version=2)), committed(ONE))


def test_a_changed_record_breaks_monotonic() -> None:
    with breaks("G3", "the record of epoch 1 has changed"):
        checker_at(FIRST, committed(ONE), committed(record(1, rows=5), TWO))


def test_a_record_that_does_not_describe_its_version_breaks_one_moment() -> None:
    with breaks("G2", "version 2 has the head"):
        checker_at(FIRST, committed(record(1, state_version=1)))


def test_a_lost_record_breaks_monotonic_unless_it_has_expired() -> None:
    versions = FIRST, committed(ONE), committed(ONE, TWO), committed(TWO)
    assert checker_at(*versions, keep_epochs=1).count == 2
    for keep_epochs in (2, None):
        with breaks("G3", "records are lost: [1]"):
            checker_at(*versions, keep_epochs=keep_epochs)


def test_a_record_that_is_back_breaks_monotonic() -> None:
    with breaks("G3", "records are back: [1]"):
        checker_at(FIRST, committed(ONE), committed(ONE, TWO), committed(TWO), committed(ONE, TWO), keep_epochs=1)


def test_an_acknowledged_epoch_that_is_not_committed_breaks_monotonic() -> None:
    checker = checker_at(FIRST, committed(ONE))
    checker.check_acknowledged(ONE)
    for never in (TWO, record(1, rows=5)):
        with breaks("G3", f"epoch {never.epoch} was acknowledged"):
            checker.check_acknowledged(never)


def test_a_retained_epoch_without_its_version_breaks_one_moment() -> None:
    versions = {1: FIRST, 2: committed(ONE), 3: committed(ONE, TWO)}
    checker = checker_at(*versions.values())
    assert checker.check_retained(versions) == [ONE, TWO]
    for damaged in ({3: versions[3]}, {2: versions[3], 3: versions[3]}):
        with breaks("G2", "epoch 1 names version 2"):
            checker.check_retained(damaged)


def test_an_expired_epoch_that_a_backfill_reads_breaks_monotonic() -> None:
    three = record(3)
    versions = FIRST, committed(ONE), committed(ONE, TWO), committed(ONE, TWO, three), committed(TWO, three)
    checker = checker_at(*versions, keep_epochs=2)
    assert [checker.state_version_at(epoch) for epoch in (2, 3, 9)] == [3, 4, 4]
    assert checker.committed_by("run-1") is None
    with breaks("G3", "epoch 1, which a backfill reads, has expired"):
        checker.state_version_at(1)


def test_an_epoch_with_a_tag_that_is_lost_breaks_monotonic() -> None:
    tagged = [store_version(Head(1, 2, run="run-1", tags={"x": 1}), records) for records in ([ONE, TWO], [TWO])]
    with breaks("G3", "the epochs [1] have tags"):
        checker_at(FIRST, committed(ONE), committed(ONE, TWO), *tagged, keep_epochs=1)


def test_an_epoch_that_a_reader_holds_and_that_is_lost_breaks_monotonic() -> None:
    checker = checker_at(FIRST, committed(ONE), committed(ONE, TWO), keep_epochs=1)
    with breaks("G3", "records are lost: [1]"):
        checker.check(4, committed(TWO), frozenset({1}))
    checker.check(4, committed(TWO), frozenset({2}))
