"""Each command that is not done, or done too often, breaks its promise."""

from __future__ import annotations

from actors.protocol.barrier import Pause, Resume
from slackwater.commands.operations import (
    ClearQuarantineCommand,
    ForgetCommand,
    ReingestCommand,
    RetryCommand,
    TagCommand,
)
from state.ownership.command import Answer
from state.tables.records import Head
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.promises.command_checker import CommandChecker
from tests.simulation.promises.store_versions import bad_record, breaks, file_tables, finished, put, record, waiting
from tests.simulation.world.bucket import Bucket

FILE = put(Bucket(page_size=10), "a")
DONE, REFUSED = Answer(True, "done"), Answer(False, "the run is stopping")
BAD = file_tables([finished(FILE, 1, status="quarantined")])
RETRIED = file_tables(queue=[waiting(FILE, 1, attempts=1)])
FORGOTTEN = file_tables([finished(FILE, status="forgotten")])


class Commanded(CommandChecker):
    """A checker of a store whose versions differ in their files."""

    def versions(self, *versions: FileTables) -> None:
        for tables in versions:
            self.check(tables, Head(1, 1), None)


def test_a_retried_file_is_read_again() -> None:
    checker = Commanded()
    checker.versions(BAD)
    checker.on_asked("1", RetryCommand(file="a"))
    checker.versions(RETRIED)
    checker.on_answered("1", DONE)
    # As bad as before: the next command retries it once more.
    checker.versions(BAD)
    checker.on_asked("2", RetryCommand())
    checker.versions(RETRIED)
    checker.on_answered("2", DONE)


def test_a_file_that_is_retried_before_a_mark_belongs_to_it() -> None:
    checker = Commanded()
    checker.versions(BAD)
    checker.on_asked("1", RetryCommand())
    checker.on_mark()
    checker.versions(RETRIED)
    assert checker.retried_since_mark == {(FILE.source, FILE.path, FILE.version)}
    checker.on_mark()
    assert checker.retried_since_mark == set()


def test_a_file_that_is_retried_twice_by_one_command_breaks_exactly_once() -> None:
    checker = Commanded()
    checker.versions(BAD)
    checker.on_asked("1", RetryCommand())
    with breaks("G1", "a was in quarantine, and is read again more often than it was retried"):
        checker.versions(RETRIED, BAD, RETRIED)


def test_a_file_that_no_user_retried_breaks_exactly_once() -> None:
    checker = Commanded()
    checker.versions(BAD)
    checker.on_asked("1", RetryCommand(file="b"))
    with breaks("G1", "more often than it was retried"):
        checker.versions(RETRIED)


def test_a_retry_that_is_answered_and_not_done_breaks_exactly_once() -> None:
    checker = Commanded()
    checker.versions(BAD)
    checker.on_asked("1", RetryCommand())
    checker.on_answered("1", REFUSED)
    checker.on_asked("2", RetryCommand())
    with breaks("G1", "is done, and not for"):
        checker.on_answered("2", DONE)


def test_a_retry_is_done_when_a_later_version_is_finished() -> None:
    later = put(Bucket(page_size=10), "a", rows=0)
    checker = Commanded()
    checker.versions(BAD)
    checker.on_asked("1", RetryCommand())
    checker.versions(file_tables([*BAD.ledger.values(), finished(later, 0, listed_epoch=2)]))
    checker.on_answered("1", DONE)


def test_a_forget_that_is_answered_before_the_rows_are_gone_breaks_exactly_once() -> None:
    checker = Commanded()
    checker.versions(file_tables([finished(FILE)]))
    checker.on_asked("1", ForgetCommand(file="a"))
    with breaks("G1", "is done, and not for"):
        checker.on_answered("1", DONE)
    checker.versions(FORGOTTEN)
    checker.on_answered("1", DONE)


def test_a_forgotten_file_that_is_read_again_breaks_exactly_once() -> None:
    again = file_tables([finished(FILE, status="forgotten")], queue=[waiting(FILE, replaces=True)])
    checker = Commanded()
    checker.versions(FORGOTTEN)
    with breaks("G1", "a was forgotten, and is read again"):
        checker.versions(again)
    checker.on_asked("1", ReingestCommand(file="a"))
    checker.versions(again)
    checker.on_answered("1", DONE)


def test_a_file_that_was_read_again_in_vain_before_the_answer_is_read_again() -> None:
    checker = Commanded()
    checker.versions(file_tables([finished(FILE)]))
    checker.on_asked("1", ReingestCommand(file="a"))
    checker.versions(file_tables([finished(FILE, error="a has changed since it was listed")]))
    checker.on_answered("1", DONE)


def test_a_file_that_is_deleted_before_the_answer_is_not_read_again() -> None:
    checker = Commanded()
    checker.versions(file_tables([finished(FILE)]))
    checker.on_asked("1", ReingestCommand(file="a"))
    checker.versions(file_tables([finished(FILE, status="forgotten", deleted_epoch=2)]))
    checker.on_answered("1", DONE)


def test_a_file_that_is_not_read_again_when_the_answer_says_so_breaks_exactly_once() -> None:
    checker = Commanded()
    checker.versions(file_tables([finished(FILE)]))
    checker.on_asked("1", ReingestCommand(file="a"))
    with breaks("G1", "is done, and not for"):
        checker.on_answered("1", DONE)


def test_a_tag_that_goes_by_itself_breaks_monotonic() -> None:
    checker = CommandChecker()
    checker.on_asked("1", TagCommand(name="x", epoch=1))
    checker.check(file_tables(), Head(1, 1, tags={"x": 1}), None)
    checker.on_answered("1", DONE)
    with breaks("G3", "tag x was at epoch 1"):
        checker.check(file_tables(), Head(1, 2), None)
    checker.on_asked("2", TagCommand(name="x", epoch=None))
    checker.check(file_tables(), Head(1, 2), None)
    checker.on_answered("2", DONE)


def test_a_tag_that_is_not_there_when_the_answer_says_so_breaks_monotonic() -> None:
    checker = CommandChecker()
    checker.on_asked("1", TagCommand(name="x", epoch=1))
    with breaks("G3", "is done, and the tags are {}"):
        checker.on_answered("1", DONE)


def test_rows_of_a_paused_run_break_nothing_forgotten() -> None:
    checker = CommandChecker()
    checker.check(file_tables(), Head(1, 1, run="run-1"), None)
    checker.on_asked("1", Pause())
    checker.on_answered("1", Answer(True, Pause.outcome))
    checker.check(file_tables(), Head(1, 2, run="run-1"), record(2))
    with breaks("G4", "the run is paused, and epoch 3 has 1 rows"):
        checker.check(file_tables(), Head(2, 3, run="run-1"), record(3, rows=1))
    checker.check(file_tables(), Head(3, 3, run="run-2"), record(3, rows=1))
    checker.on_asked("2", Resume())
    checker.check(file_tables(), Head(1, 4, run="run-1"), record(4, rows=1))


def test_a_pause_that_comes_after_a_resume_of_the_process_is_not_in_force() -> None:
    checker = CommandChecker()
    checker.check(file_tables(), Head(1, 1), None)
    checker.on_asked("1", Pause())
    checker.on_resumed()
    checker.on_answered("1", Answer(True, Pause.outcome))
    checker.check(file_tables(), Head(1, 2), record(2, rows=1))


def test_an_answer_with_an_unknown_error_shows_a_bug() -> None:
    checker = CommandChecker()
    checker.on_asked("1", RetryCommand())
    with breaks("no bug", "KeyError"):
        checker.on_answered("1", Answer(False, "KeyError: 'a'"))


def test_a_bad_record_that_loses_its_content_to_nobody_breaks_bad_input_is_kept() -> None:
    checker = Commanded()
    kept, cleared = bad_record_of(epoch=2), bad_record_of(epoch=2, reason=None)
    checker.versions(kept)
    checker.on_asked("1", ClearQuarantineCommand(epoch=2))
    checker.versions(cleared, cleared)
    checker.on_answered("1", DONE)
    late = bad_record_of(epoch=3)
    checker.versions(late)
    with breaks("G6", "a bad record of a has lost its content, and no command cleared it"):
        checker.versions(bad_record_of(epoch=3, reason=None))


def test_a_clearing_that_leaves_content_breaks_exactly_once() -> None:
    checker = Commanded()
    checker.versions(bad_record_of(epoch=2))
    checker.on_asked("1", ClearQuarantineCommand(epoch=2))
    with breaks("G1", "is done, and not for"):
        checker.on_answered("1", DONE)


def bad_record_of(epoch: int, reason: str | None = "no number") -> FileTables:
    return file_tables(quarantine=[bad_record(FILE, 0, epoch, reason)])
