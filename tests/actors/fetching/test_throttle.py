"""Under a limit a fetch actor opens files, reads bytes and emits rows at its share of the rate."""

from __future__ import annotations

import pytest

from actors.fetching.fetch_executor import FetchExecutor
from actors.fetching.instructions import FetchInstruction
from actors.fetching.read_outcomes import PieceRead
from actors.files import ForgottenFile
from actors.protocol.barrier import Pause, Resume, Throttle
from actors.protocol.instructions import WakeAt
from actors.protocol.messages import ForgottenFiles
from actors.settings import FetchSettings
from tests.actors.flow import INITIAL, barrier, delta_rows, emitted, fetcher, file, files, of, reads, rows

ONE = FetchSettings(num_fetchers=1)


def throttled(throttle: Throttle, settings: FetchSettings = ONE, now_s: float = 0.0) -> FetchExecutor:
    executor = fetcher(settings=settings)
    executor.on_message(INITIAL, now_s)
    executor.on_message(barrier(1, throttle), now_s)
    return executor


def opened(instructions: list[FetchInstruction]) -> list[str]:
    return [path for path, _ in reads(instructions)]


def done(
    executor: FetchExecutor, path: str, now_s: float, *, first_row: int = 0, bytes_read: int = 10, last: bool = True
) -> list[str]:
    instructions = executor.on_read(
        [PieceRead(file(path), rows(1, first_row), last=last, requests=1, bytes_read=bytes_read)], now_s
    )
    return opened(instructions)


def wake(instructions: list[FetchInstruction]) -> float:
    (wake_at,) = of(WakeAt, instructions)
    assert isinstance(wake_at, WakeAt)
    return wake_at.monotonic_s


def test_files_are_opened_at_the_rate_and_the_executor_asks_to_be_woken() -> None:
    executor = throttled(Throttle(files_per_second=2.0))
    instructions = executor.on_message(files("a", "b", "c"), 0.0)
    assert (opened(instructions), wake(instructions)) == (["a"], 0.5)
    assert opened(executor.on_time(0.4)) == []
    instructions = executor.on_time(0.5)
    assert (opened(instructions), wake(instructions)) == (["b"], 1.0)
    instructions = executor.on_time(1.0)
    assert (opened(instructions), of(WakeAt, instructions)) == (["c"], []), "nothing is left to wait for"


def test_a_limit_begins_exactly_at_the_barrier() -> None:
    executor = fetcher(settings=ONE)
    executor.on_message(INITIAL, 0.0)
    assert opened(executor.on_message(files("a", "b"), 0.0)) == ["a", "b"]
    executor.on_message(barrier(1, Throttle(files_per_second=1.0)), 0.0)
    assert opened(executor.on_message(files("c", "d"), 0.0)) == ["c"]


def test_every_fetch_actor_takes_its_share() -> None:
    executor = throttled(Throttle(files_per_second=2.0), FetchSettings(num_fetchers=4))
    instructions = executor.on_message(files("a", "b"), 0.0)
    assert (opened(instructions), wake(instructions)) == (["a"], 2.0)


def test_bytes_are_read_at_the_rate_by_what_reading_has_cost() -> None:
    executor = throttled(Throttle(bytes_per_second=100.0))
    assert opened(executor.on_message(files("a", "b"), 0.0)) == ["a"]
    assert done(executor, "a", 0.0, bytes_read=500) == []
    assert opened(executor.on_time(4.9)) == []
    assert opened(executor.on_time(5.0)) == ["b"], "500 bytes at 100 a second"


def test_a_file_that_is_open_is_read_on_while_no_other_may_be_opened() -> None:
    executor = throttled(Throttle(files_per_second=0.01))
    assert opened(executor.on_message(files("a", "b"), 0.0)) == ["a"]
    assert done(executor, "a", 0.0, last=False) == ["a"]
    assert done(executor, "a", 0.0, first_row=1) == []


def test_without_limits_everything_goes_on_at_once() -> None:
    executor = throttled(Throttle(files_per_second=0.01, bytes_per_second=0.01))
    executor.on_message(files("a", "b", "c"), 0.0)
    assert opened(executor.on_message(barrier(2, Throttle()), 1.0)) == ["b", "c"]


def test_other_mutations_leave_the_limit_as_it_is() -> None:
    executor = throttled(Throttle(files_per_second=1.0))
    executor.on_message(files("a", "b", "c"), 0.0)
    assert of(WakeAt, executor.on_message(barrier(2, Pause()), 0.5)) == [], "a paused actor waits for no time"
    assert opened(executor.on_time(1.0)) == []
    assert opened(executor.on_message(barrier(3, Resume()), 1.0)) == ["b"]
    assert opened(executor.on_message(barrier(4), 1.5)) == []


def test_rows_are_emitted_at_the_rate() -> None:
    executor = throttled(Throttle(rows_per_second=10.0))
    executor.on_message(files("a"), 0.0)
    assert emitted(executor.on_read([PieceRead(file("a"), rows(30), last=True, requests=1, bytes_read=1)], 0.0)) == [30]
    executor.on_message(files("b"), 0.0)
    assert emitted(executor.on_read([PieceRead(file("b"), rows(5), last=True, requests=1, bytes_read=1)], 0.0)) == []
    assert wake(executor.on_time(1.0)) == pytest.approx(3.0)
    assert emitted(executor.on_message(barrier(2), 2.9)) == [], "a barrier takes no more along"
    assert emitted(executor.on_time(3.0)) == [5]


def test_no_more_files_end_in_an_epoch_than_are_allowed() -> None:
    settings = FetchSettings(num_fetchers=2, max_files_per_epoch=5)
    executor = throttled(Throttle(), settings=settings)
    paths = ["a", "b", "c", "d", "e"]
    executor.on_message(files(*paths), 0.0)
    for path in paths:
        executor.on_read([PieceRead(file(path), rows(1), last=True, requests=1, bytes_read=1)], 0.0)
    assert executor.progress().is_full, "word that a barrier is due"
    for epoch, ended in [(2, ["a", "b"]), (3, ["c", "d"]), (4, ["e"])]:
        sealed = executor.on_message(barrier(epoch), 0.0)
        assert [row["path"] for row in delta_rows(sealed, "ledger")] == ended
    assert not executor.progress().is_full


def test_an_epoch_that_forgot_more_files_than_may_end_in_it_ends_no_further_one() -> None:
    executor = throttled(Throttle(), settings=FetchSettings(num_fetchers=1, max_files_per_epoch=2))
    executor.on_message(files("a", "b", "c", "d"), 0.0)
    forgotten = ForgottenFiles(tuple(ForgottenFile("s", path) for path in "abc"))
    executor.on_message(forgotten, 0.0)
    executor.on_read([PieceRead(file("d"), rows(1), last=True, requests=1, bytes_read=1)], 0.0)
    assert executor.progress().is_full
    ended = [str(row["path"]) for row in delta_rows(executor.on_message(barrier(2), 0.0), "ledger")]
    assert sorted(ended) == ["a", "b", "c"]
    assert [row["path"] for row in delta_rows(executor.on_message(barrier(3), 0.0), "ledger")] == ["d"]
