"""A message is deleted when everything that it names is in a committed epoch, and not before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.notifications.message_tracker import MessageTracker, QueueMessage


def message(number: int, receipt: str = "r", deliveries: int = 1) -> QueueMessage:
    return QueueMessage(f"m{number}", f"{receipt}{number}", "{}", 100.0 + number, deliveries)


def settle(tracker: MessageTracker, path: str, epoch: int) -> None:
    tracker.look([path])
    tracker.on_looked(path, again=False)
    tracker.settle(path, epoch)


def done(tracker: MessageTracker) -> list[str]:
    return [each.message_id for each in tracker.take_done()]


def test_it_is_done_when_the_epochs_of_all_its_paths_are_committed() -> None:
    tracker = MessageTracker(60.0)
    assert tracker.receive(message(1), ["a", "b"], 0.0)
    settle(tracker, "a", 5)
    tracker.on_committed(9)
    assert done(tracker) == [], "b is not settled"
    settle(tracker, "b", 10)
    assert done(tracker) == [], "epoch 10 is not committed"
    tracker.on_committed(10)
    assert done(tracker) == ["m1"]
    assert done(tracker) == [] and len(tracker) == 0


def test_one_path_settles_every_message_that_names_it() -> None:
    tracker = MessageTracker(60.0)
    for number in (1, 2):
        tracker.receive(message(number), ["a"], 0.0)
    settle(tracker, "a", 0)
    assert done(tracker) == ["m1", "m2"]


def test_a_message_without_paths_is_done_at_once() -> None:
    tracker = MessageTracker(60.0)
    tracker.receive(message(1), [], 0.0)
    assert done(tracker) == ["m1"]


def test_a_message_that_comes_again_is_deleted_by_its_last_receipt() -> None:
    tracker = MessageTracker(60.0)
    tracker.receive(message(1), ["a"], 0.0)
    assert tracker.received_once == 1
    assert not tracker.receive(message(1, "again", 2), ["a"], 70.0)
    assert (tracker.redelivered, tracker.received_once) == (1, 0)
    settle(tracker, "a", 0)
    assert [each.receipt for each in tracker.take_done()] == ["again1"]


def test_it_stays_invisible_as_long_as_it_is_tracked() -> None:
    tracker = MessageTracker(60.0)
    assert MessageTracker(60.0).next_due_s is None
    tracker.receive(message(1), ["a"], 0.0)
    tracker.receive(message(2), ["b"], 20.0)
    assert tracker.next_due_s == 30.0
    assert tracker.take_due(29.9) == []
    assert [each.message_id for each in tracker.take_due(30.0)] == ["m1"]
    assert tracker.next_due_s == 50.0
    settle(tracker, "b", 0)
    assert done(tracker) == ["m2"]
    assert tracker.next_due_s == 60.0
    assert tracker.oldest_sent_s == 101.0


@given(st.lists(st.tuples(st.integers(0, 5), st.sets(st.sampled_from("abc")), st.integers(1, 4)), max_size=12))
def test_whatever_comes_nothing_is_deleted_early_and_nothing_stays(steps: list[tuple[int, set[str], int]]) -> None:
    tracker = MessageTracker(60.0)
    open_paths: dict[str, set[str]] = {}
    for number, paths, epoch in steps:
        if tracker.receive(message(number), paths, 0.0):
            open_paths[f"m{number}"] = set(paths)
        for path in sorted(paths)[:1]:
            settle(tracker, path, epoch)
            for each in open_paths.values():
                each.discard(path)
        for name in done(tracker):
            assert not open_paths.pop(name), "something of it was not settled"
    for path in "abc":
        settle(tracker, path, 4)
    tracker.on_committed(4)
    assert {*done(tracker)} == open_paths.keys() and len(tracker) == 0


def test_what_a_look_has_found_settles_no_message_that_came_while_it_was_under_way() -> None:
    tracker = MessageTracker(60.0)
    tracker.receive(message(1), ["a"], 0.0)
    tracker.look(["a"])
    tracker.receive(message(2), ["a"], 0.0)
    tracker.on_looked("a", again=False)
    tracker.settle("a", 0)
    assert done(tracker) == ["m1"]
    settle(tracker, "a", 0)
    assert done(tracker) == ["m2"]


def test_a_look_in_doubt_settles_nothing_until_the_next_one() -> None:
    tracker = MessageTracker(60.0)
    tracker.receive(message(1), ["a"], 0.0)
    tracker.look(["a"])
    tracker.on_looked("a", again=True)
    tracker.settle("a", 0)
    assert done(tracker) == [] and not tracker.is_settled(tracker.last)
    settle(tracker, "a", 0)
    assert tracker.is_settled(tracker.last) and done(tracker) == ["m1"]


def test_what_is_released_is_not_known_any_more() -> None:
    tracker = MessageTracker(60.0)
    tracker.receive(message(1), ["a"], 0.0)
    assert [each.message_id for each in tracker.take_all()] == ["m1"]
    settle(tracker, "a", 0)
    assert done(tracker) == [] and tracker.next_due_s is None and tracker.oldest_sent_s is None
