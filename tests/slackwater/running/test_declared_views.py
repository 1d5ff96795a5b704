"""Tests of the views of a run that change while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from actors.protocol.run_state import RunState
from actors.recovery.attempt_plan import AttemptPlan
from slackwater.extensions.run_views import NeedsChangedError, PublishedView
from slackwater.running.attempt import Attempt
from slackwater.running.declared_views import DeclaredViews
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import CommandRefusedError, RunFailedError, ViewNotFoundError
from tests.slackwater.running.scripted_attempt import Requested
from tests.waiting import eventually

V, W = ViewDefinition("v", query="SELECT x FROM s"), ViewDefinition("w", query="SELECT x FROM s")
READS = frozenset({"s"})


class ChangedAttempt:
    """An attempt whose changes of views the test ends."""

    plan = AttemptPlan("run")

    def __init__(self) -> None:
        self.state = RunState(version=0, phase="running", term=1, epoch=7)
        self.asked: list[str] = []
        self.read_by: dict[str, tuple[str, ...]] = {}
        self.changes: list[Future[None]] = []

    def add_view(self, definition: ViewDefinition) -> Future[None]:
        return self._change(f"add {definition.name}")

    def drop_view(self, name: str) -> Future[None]:
        return self._change(f"drop {name}")

    def retry_view(self, name: str) -> Future[None]:
        return self._change(f"retry {name}")

    def release(self) -> Future[None]:
        return self._change("release")

    def readers(self, name: str) -> tuple[str, ...]:
        return self.read_by.get(name, ())

    def _change(self, text: str) -> Future[None]:
        self.asked.append(text)
        self.changes.append(Future())
        return self.changes[-1]


class Declaring(Requested):
    """The views of a run, and its attempts."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.views = DeclaredViews([V], READS, self.requests)
        self.threads: list[threading.Thread] = []

    def begin(self) -> ChangedAttempt:
        attempt = ChangedAttempt()
        self.requests.begin(cast(Attempt, attempt))
        return attempt

    def come_to(self, attempt: ChangedAttempt, epoch: int) -> None:
        """The attempt has committed an epoch."""
        attempt.state = replace(attempt.state, epoch=epoch)
        with self.news:
            self.news.notify_all()

    def beside(self, call: Callable[[], None]) -> None:
        self.threads.append(threading.Thread(target=call))
        self.threads[-1].start()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Declaring]:
    run = Declaring(tmp_path / "root")
    yield run
    run.requests.end(for_good=True)
    for thread in run.threads:
        thread.join()


def test_the_next_attempt_has_the_views_of_the_last_one(run: Declaring) -> None:
    attempt = run.begin()
    run.beside(lambda: run.views.add(W))
    eventually(lambda: attempt.asked == ["add w"])
    attempt.changes[0].set_result(None)
    eventually(lambda: (set(run.views.definitions), set(run.views.reads)) == ({"v", "w"}, {"v", "w"}))
    run.beside(lambda: run.views.drop("v"))
    eventually(lambda: attempt.asked == ["add w", "drop v"])
    attempt.changes[1].set_result(None)
    eventually(lambda: run.views.dropped == {"v": 7})
    assert (set(run.views.definitions), set(run.views.reads)) == ({"w"}, {"w"})


def test_the_files_of_a_view_are_protected_before_its_change_is_accepted(run: Declaring) -> None:
    attempt = run.begin()
    before = run.views.needs.needs
    run.beside(lambda: run.views.add(W, [PublishedView("w", "delta:/t")]))
    eventually(lambda: attempt.asked == ["add w"])
    meanwhile = run.views.needs.needs
    assert (meanwhile.changing, meanwhile.published) == ({"w": READS}, (PublishedView("w", "delta:/t"),))
    with pytest.raises(NeedsChangedError), run.views.needs.acting(before):
        raise AssertionError
    run.views.needs.analysed({"v": V, "w": W}, {"v": "1", "w": "2"})  # as the loop does, before it accepts the view
    attempt.changes[0].set_result(None)
    eventually(lambda: not run.views.needs.needs.changing)
    assert set(run.views.needs.needs.reads) == {"v", "w"}
    run.beside(lambda: run.views.retry("v"))
    eventually(lambda: len(attempt.changes) == 2)
    assert run.views.needs.needs.changing == {"v": READS}
    attempt.changes[1].set_result(None)


def test_a_refused_view_protects_no_files_and_its_tables_do_not_count(run: Declaring) -> None:
    attempt = run.begin()
    refused = list[ViewNotFoundError]()

    def add() -> None:
        try:
            run.views.add(W, [PublishedView("w", "delta:/t")])
        except ViewNotFoundError as error:
            refused.append(error)

    run.beside(add)
    eventually(lambda: attempt.asked == ["add w"])
    attempt.changes[0].set_exception(ViewNotFoundError("w cannot be built"))
    eventually(lambda: bool(refused))
    needs = run.views.needs.needs
    assert (needs.changing, needs.published, set(needs.reads)) == ({}, (), {"v"})


def test_a_view_that_is_added_again_is_declared(run: Declaring) -> None:
    attempt = run.begin()
    run.beside(lambda: run.views.drop("v"))
    eventually(lambda: len(attempt.changes) == 1)
    attempt.changes[0].set_result(None)
    eventually(lambda: run.views.dropped == {"v": 7})
    run.beside(lambda: run.views.add(V))
    eventually(lambda: len(attempt.changes) == 2)
    attempt.changes[1].set_result(None)
    eventually(lambda: (set(run.views.definitions), run.views.dropped) == ({"v"}, {"v": 7}))


def test_a_change_that_an_attempt_did_not_carry_out_is_that_of_the_next(run: Declaring) -> None:
    first = run.begin()
    run.beside(lambda: run.views.drop("v"))
    eventually(lambda: len(first.changes) == 1)
    first.changes[0].set_exception(RunFailedError("the attempt ended before the views could change"))
    assert run.views.dropped == {}
    run.requests.end()
    second = run.begin()
    eventually(lambda: second.asked == ["drop v"])
    second.changes[0].set_result(None)
    eventually(lambda: run.views.dropped == {"v": 7})


def test_a_retry_that_an_attempt_did_not_carry_out_is_that_of_the_next(run: Declaring) -> None:
    first = run.begin()
    run.beside(lambda: run.views.retry("v"))
    eventually(lambda: first.asked == ["retry v"])
    first.changes[0].set_exception(RunFailedError("the attempt ended before the views could change"))
    run.requests.end()
    second = run.begin()
    eventually(lambda: second.asked == ["retry v"])
    second.changes[0].set_result(None)


def test_a_view_that_is_dropped_is_retried_no_more(run: Declaring) -> None:
    attempt = run.begin()
    run.views.retried.add("v")
    run.beside(lambda: run.views.drop("v"))
    eventually(lambda: len(attempt.changes) == 1)
    attempt.changes[0].set_result(None)
    eventually(lambda: run.views.retried == set())


def test_a_change_that_is_refused_changes_nothing(run: Declaring) -> None:
    attempt = run.begin()
    errors: list[Exception] = []

    def drop() -> None:
        try:
            run.views.drop("w")
        except ViewNotFoundError as error:
            errors.append(error)

    run.beside(drop)
    eventually(lambda: len(attempt.changes) == 1)
    attempt.changes[0].set_exception(ViewNotFoundError("there is no view 'w' to drop"))
    eventually(lambda: len(errors) == 1)
    assert (set(run.views.definitions), run.views.dropped) == ({"v"}, {})


def test_no_view_changes_when_the_run_is_over(run: Declaring) -> None:
    run.requests.end(for_good=True)
    with pytest.raises(CommandRefusedError):
        run.views.drop("v")


def test_a_release_ends_when_its_epoch_is_committed(run: Declaring) -> None:
    ended: list[str] = []

    def release() -> None:
        run.views.release()
        ended.append("released")

    attempt = run.begin()
    run.beside(release)
    eventually(lambda: attempt.asked == ["release"])
    run.views.release_asked.ask()
    attempt.changes[0].set_result(None)
    assert run.views.release_asked.take(8)
    run.come_to(attempt, 7)
    run.requests.end()
    run.views.release_asked.recover(7)
    assert run.views.release_asked.take(9), "the next attempt does it"
    later = run.begin()
    run.come_to(later, 8)
    assert not ended
    run.come_to(later, 9)
    eventually(lambda: ended == ["released"])
    assert later.asked == []


def test_a_release_is_refused_if_the_run_ends_before_its_epoch(run: Declaring) -> None:
    errors: list[str] = []

    def release() -> None:
        with pytest.raises(CommandRefusedError) as caught:
            run.views.release()
        errors.append(str(caught.value))

    attempt = run.begin()
    run.beside(release)
    eventually(lambda: attempt.asked == ["release"])
    run.views.release_asked.ask()
    attempt.changes[0].set_result(None)
    run.requests.end(for_good=True)
    eventually(lambda: len(errors) == 1)
    assert "the run is stopping: ask again" in errors[0]
