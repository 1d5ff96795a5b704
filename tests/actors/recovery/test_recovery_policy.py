"""The pauses, the caution and the end that follow failed attempts."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from actors.files import FileKey
from actors.protocol.run_state import RunState
from actors.recovery.recovery_policy import NextAttempt, RecoveryPolicy
from actors.settings import RecoverySettings
from state.errors import (
    CommitUnknownError,
    FencedError,
    NodeLostError,
    RowsLostError,
    RunFailedError,
    SlackwaterError,
    SparkNotStartedError,
    StorageUnavailableError,
    ViewError,
)
from state.tables.records import EpochCounts

DEATH = RunFailedError("the actor fetch-0 died")
A, B, C, D = (("s", name, b"1") for name in "abcd")


def state(
    files: int = 0,
    rows: int = 0,
    in_flight: int = 8,
    at_once: int | None = None,
    suspects: Collection[FileKey] = (),
    read: int = 0,
) -> RunState:
    return RunState(
        version=1,
        phase="running",
        term=1,
        epoch=1,
        totals=EpochCounts(files=files, rows=rows),
        files_in_flight=in_flight,
        files_at_once=at_once,
        suspects=dict.fromkeys(suspects, read),
    )


class Story:
    """One run's failures, an hour apart unless told."""

    def __init__(self, apart_s: float = 3_600.0, **settings: float) -> None:
        self.policy = RecoveryPolicy(RecoverySettings(**settings))  # type: ignore[arg-type]
        self.now_s, self.apart_s = 0.0, apart_s

    def fails(self, error: Exception = DEATH, changed: Collection[str] = (), **seen: object) -> NextAttempt | None:
        self.now_s += self.apart_s
        return self.policy.on_failure(error, state(**seen), self.now_s, changed)  # type: ignore[arg-type]

    def goes_on(self, error: Exception = DEATH, changed: Collection[str] = (), **seen: object) -> NextAttempt:
        following = self.fails(error, changed, **seen)
        assert following is not None
        return following


@pytest.mark.parametrize("error", [FencedError("x"), ViewError("x")])
def test_what_no_new_attempt_can_mend_ends_the_run(error: SlackwaterError) -> None:
    assert Story().fails(error) is None


def test_pauses_grow_and_tries_are_bounded() -> None:
    story = Story(first_pause_s=1.0, max_pause_s=3.0, max_tries=4)
    unreachable = StorageUnavailableError("x")
    assert [story.goes_on(unreachable).pause_s for _ in range(4)] == [1.0, 2.0, 3.0, 3.0]
    assert story.fails(unreachable) is None


def test_a_finished_file_makes_the_count_begin_again() -> None:
    story = Story(first_pause_s=1.0, max_tries=2)
    for files in range(1, 6):
        assert story.goes_on(files=files).pause_s == 1.0


def test_an_epoch_that_killed_twice_is_tried_at_half_its_size_down_to_one() -> None:
    story = Story()
    assert story.goes_on(in_flight=8).files_at_once is None
    assert story.goes_on(in_flight=8).files_at_once == 4
    assert story.goes_on(at_once=4, suspects=(A, B, C, D)).files_at_once == 2
    assert story.goes_on(at_once=2, suspects=(A, B)).files_at_once == 1


@pytest.mark.parametrize("error", [StorageUnavailableError("x"), CommitUnknownError("x"), RowsLostError("x")])
def test_no_file_is_to_blame_for_the_stores(error: SlackwaterError) -> None:
    story = Story()
    for _ in range(3):
        following = story.goes_on(error, at_once=None, suspects=())
    assert following.files_at_once is None and not following.poisoned


def test_a_file_that_fails_alone_three_times_is_poisoned() -> None:
    story = Story()
    assert not story.goes_on(at_once=1, suspects=(A,)).poisoned
    assert not story.goes_on(at_once=1, suspects=(A,)).poisoned
    following = story.goes_on(at_once=1, suspects=(A,))
    assert list(following.poisoned) == [A] and "fetch-0 died" in following.poisoned[A].reason
    assert story.goes_on(at_once=1, suspects=(B,)).poisoned.keys() == {A}


def test_when_every_file_fails_no_file_is_to_blame() -> None:
    story = Story()
    for path in (A, A, A, B, B, B, C, C):
        assert story.fails(at_once=1, suspects=(path,)) is not None
    assert story.fails(at_once=1, suspects=(C,)) is None


def test_rows_between_them_clear_the_suspicion_of_the_whole() -> None:
    story = Story()
    for failure, path in enumerate((A, A, A, B, B, B, C, C, C)):
        assert story.fails(at_once=1, suspects=(path,), files=failure // 3, rows=failure // 3) is not None


def test_the_end_of_a_file_in_quarantine_does_not_clear_it() -> None:
    story = Story()
    for failure, path in enumerate((A, A, A, B, B, B, C, C)):
        assert story.fails(at_once=1, suspects=(path,), files=failure // 3) is not None
    assert story.fails(at_once=1, suspects=(C,), files=2) is None


def test_rows_make_the_count_begin_again() -> None:
    story = Story(first_pause_s=1.0, max_tries=2)
    for rows in range(1, 20):
        assert story.goes_on(rows=rows).pause_s == 1.0


def test_a_large_file_whose_rows_are_committed_between_its_failures_is_never_poisoned() -> None:
    story = Story(apart_s=60.0)
    for failure in range(50):
        assert not story.goes_on(at_once=1, suspects=(A,), rows=100 * failure, read=100 * failure).poisoned


def test_a_file_that_kills_at_one_row_is_poisoned_wherever_its_reading_began() -> None:
    story = Story()
    for read in (0, 40, 60, 60):
        assert not story.goes_on(at_once=1, suspects=(A,), rows=read, read=read).poisoned
    assert story.goes_on(at_once=1, suspects=(A,), rows=60, read=60).poisoned.keys() == {A}


def test_rows_of_other_files_clear_no_suspect() -> None:
    story = Story()
    for rows in (0, 100):
        assert not story.goes_on(at_once=1, suspects=(A,), rows=rows).poisoned
    assert story.goes_on(at_once=1, suspects=(A,), rows=200).poisoned.keys() == {A}


def test_the_death_of_a_node_accuses_no_file_and_makes_no_attempt_careful() -> None:
    story, lost = Story(apart_s=60.0), NodeLostError("the actor fetch-0 died: its node does not answer")
    for failure in range(50):
        following = story.goes_on(lost, files=failure, suspects=())
        assert following.files_at_once is None
    for _ in range(9):
        following = story.goes_on(lost, files=50, at_once=1, suspects=(A,))
        assert following.files_at_once == 1 and not following.poisoned


def test_an_attempt_that_ends_without_suspects_is_as_careful_as_before() -> None:
    following = Story().goes_on(at_once=4, suspects=())
    assert following.files_at_once == 4 and not following.poisoned


def test_failures_that_come_often_are_suspicious_whatever_is_finished_between_them() -> None:
    seldom, often = Story(apart_s=1_000.0), Story(apart_s=60.0)
    for files in range(1, 5):
        assert seldom.goes_on(files=files).files_at_once is None
        assert often.goes_on(files=files).files_at_once is None
    assert seldom.goes_on(files=5).files_at_once is None
    assert often.goes_on(files=5).files_at_once == 4


def test_a_version_that_comes_in_place_of_one_that_killed_is_not_to_blame() -> None:
    story, later = Story(), ("s", "a", b"2")
    for suspects in ((A,), (A,), (A, later)):
        following = story.goes_on(at_once=1, suspects=suspects)
    assert following.poisoned.keys() == {A}
    assert story.goes_on(at_once=1, suspects=(later,)).poisoned.keys() == {A}, "twice is no proof"
    assert story.goes_on(at_once=1, suspects=(later,)).poisoned.keys() == {A, later}


def test_what_is_retried_is_suspected_again_with_all_its_versions() -> None:
    story, later = Story(), ("s", "a", b"2")
    for _ in range(3):
        story.goes_on(at_once=1, suspects=(A, later))
    story.policy.forgive([("s", "a")])
    assert not story.goes_on(at_once=1, suspects=(A,)).poisoned


def test_a_spark_that_does_not_start_is_no_fault_of_a_file_and_ends_the_run_at_last() -> None:
    story, no_room = Story(max_tries=4), SparkNotStartedError("no room")
    attempts = [story.goes_on(no_room, in_flight=1, suspects=(A,)) for _ in range(4)]
    assert {attempt.files_at_once for attempt in attempts} == {None}
    assert not any(attempt.poisoned for attempt in attempts)
    assert story.fails(no_room, in_flight=1, suspects=(A,)) is None


def death_in(*views: str) -> RunFailedError:
    return RunFailedError("the executors died", views)


def test_a_view_that_is_alone_at_three_deaths_is_suspended_and_no_file_is_blamed() -> None:
    story = Story()
    several = story.goes_on(death_in("v", "w"), at_once=1, suspects=(A,))
    assert several.alone_s == 600 and not several.suspended, "one of two views: the next attempt shows which"
    for _ in range(2):
        following = story.goes_on(death_in("v"), at_once=1, suspects=(A,))
        assert following.alone_s == 600 and not following.suspended
    following = story.goes_on(death_in("v"), at_once=1, suspects=(A,))
    assert following.suspended == {"v": "it ended 3 attempts, the last with: the executors died"}
    assert not following.poisoned and following.pause_s == 0.5


def test_the_second_death_of_a_view_makes_its_epochs_small_in_case_that_it_lacks_memory() -> None:
    story = Story()
    assert story.goes_on(death_in("v")).files_at_once is None
    assert story.goes_on(death_in("v")).files_at_once == 1


def test_committed_changes_of_a_view_clear_it() -> None:
    story = Story()
    for _ in range(6):
        assert not story.goes_on(death_in("v"), changed=["w"]).suspended
        assert not story.goes_on(death_in("v"), changed=["v"]).suspended


def test_a_suspension_lasts_until_an_epoch_records_it() -> None:
    story = Story()
    for _ in range(3):
        following = story.goes_on(death_in("v"))
    assert story.goes_on(DEATH).suspended == following.suspended, "the attempt ended before its first epoch"
    assert story.goes_on(DEATH, changed=["v"], files=1).suspended == {}


def test_each_view_that_ends_attempts_is_suspended_within_few_tries() -> None:
    story = Story(max_tries=3)
    for view in ("u", "v", "w", "x"):
        for _ in range(3):
            following = story.goes_on(death_in(view))
        assert view in following.suspended


def test_a_suspended_view_that_still_ends_attempts_ends_the_run() -> None:
    story = Story()
    attempts = [story.fails(death_in("v")) for _ in range(4)]
    assert [each is None for each in attempts] == [False, False, False, True]
