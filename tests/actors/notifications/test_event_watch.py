"""Tests of the event watch: times at which messages are received, kept, deleted and released, and paths looked at."""

from __future__ import annotations

from actors.notifications.event_watch import EventWatch
from actors.notifications.instructions import DeleteMessages, ExtendMessages, LookAt, Receive, ReleaseMessages
from actors.notifications.instructions import EventInstruction as Instruction
from actors.notifications.message_tracker import QueueDepth, QueueMessage
from tests.actors.flow import of
from tests.actors.notifications.bucket_events import feed, message

LONG = Receive(0, 20.0)


def watch(most_messages: int = 100, pollers: int = 2) -> EventWatch:
    return EventWatch(feed(most_messages), pollers)


def ask(made: EventWatch, now_s: float = 0.0, mark: int = 0, *, may_go_on: bool = True) -> list[Instruction]:
    return made.ask(now_s, mark, may_go_on=may_go_on)


def comes(made: EventWatch, number: int, *names: str, now_s: float = 0.0) -> None:
    made.on_messages(LONG, [message(number, *(f"in/{name}.parquet" for name in names))], None, now_s, 7)


def looked_at(instructions: list[Instruction]) -> list[tuple[str, ...]]:
    return [tuple(path.removesuffix(".parquet") for path in each.paths) for each in of(LookAt, instructions)]


def test_so_many_requests_wait_for_messages_and_an_answer_is_followed_by_the_next() -> None:
    made = watch()
    assert of(Receive, ask(made)) == [LONG, LONG]
    assert of(Receive, ask(made)) == []
    comes(made, 1, "a")
    assert of(Receive, ask(made)) == [LONG]


def test_nothing_is_received_that_could_not_be_tracked() -> None:
    made = watch(most_messages=25, pollers=4)
    assert len(of(Receive, ask(made))) == 2, "a third might bring ten more than there is room for"
    made.on_messages(LONG, [message(number, f"in/{number}.parquet") for number in range(10)], None, 0.0, 7)
    assert of(Receive, ask(made)) == []


def test_one_look_is_under_way_at_a_time_and_has_no_more_than_so_many_paths() -> None:
    made = watch(most_messages=1_000)
    made.on_messages(LONG, [message(1, *(f"in/{number:03}.parquet" for number in range(300)))], None, 0.0, 7)
    [first] = looked_at(ask(made))
    assert (len(first), looked_at(ask(made))) == (256, [])
    made.on_looked()
    [second] = looked_at(ask(made))
    assert len(second) == 44
    assert made.on_looked() == frozenset()
    assert looked_at(ask(made)) == []


def test_a_look_during_which_something_was_handed_on_is_made_again() -> None:
    made = watch()
    comes(made, 1, "a", "b")
    assert looked_at(ask(made)) == [("a", "b")]
    made.on_handed_on("a.parquet")
    made.on_handed_on("other.parquet")
    assert made.on_looked() == {"a.parquet"}
    made.settle("a.parquet", 0)
    made.settle("b.parquet", 0)
    made.on_committed(9)
    again = ask(made)
    assert looked_at(again) == [("a",)] and of(DeleteMessages, again) == []
    assert made.on_looked() == frozenset()
    made.settle("a.parquet", 0)
    assert len(of(DeleteMessages, ask(made))) == 1


def test_while_it_may_not_go_on_messages_are_kept_and_deleted_and_none_is_received() -> None:
    made = watch()
    ask(made)
    comes(made, 1, "a")
    comes(made, 2)
    kept = ask(made, 59.0, may_go_on=False)
    assert [each.messages[0].message_id for each in of(DeleteMessages, kept)] == ["m2"]
    assert [each.messages[0].message_id for each in of(ExtendMessages, kept)] == ["m1"]
    assert of(Receive, kept) == [] and looked_at(kept) == []
    assert made.wakes(0, may_go_on=False) == [59.0 + 30.0], "half of its visibility"
    assert looked_at(ask(made, 60.0)) == [("a",)]


def test_a_mark_asks_beside_the_polls_until_the_queue_is_empty() -> None:
    made = watch()
    assert len(of(Receive, ask(made))) == 2
    [extra] = of(Receive, ask(made, mark=3))
    assert extra.is_extra and extra.mark == 3
    assert of(Receive, ask(made, mark=3)) == [], "one at a time"
    made.on_messages(extra, [message(1, "in/a.parquet")], QueueDepth(0, 1), 0.0, 7)
    assert made.wakes(3, may_go_on=True) == [30.0, 1.0]
    assert of(Receive, ask(made, 0.5, mark=3)) == []
    [extra] = of(Receive, ask(made, 1.0, mark=3))
    made.on_messages(extra, [], QueueDepth(0, 1), 1.0, 7)
    assert not made.is_complete(3), "of what has come not all is handed on"
    made.on_looked()
    made.settle("a.parquet", 8)
    assert made.is_complete(3) and not made.is_complete(4)


def test_what_others_have_received_may_come_back_and_is_waited_for() -> None:
    made = watch()
    [extra] = [each for each in of(Receive, ask(made, mark=3)) if each.is_extra]
    made.on_messages(extra, [], QueueDepth(0, 1), 0.0, 7)
    assert not made.is_complete(3)
    [extra] = of(Receive, ask(made, 1.0, mark=3))
    made.on_messages(extra, [], QueueDepth(1, 0), 1.0, 7)
    assert not made.is_complete(3)
    [extra] = of(Receive, ask(made, 2.0, mark=3))
    made.on_messages(extra, [], QueueDepth(0, 0), 2.0, 7)
    assert made.is_complete(3)


def test_a_message_that_came_again_and_that_its_first_reader_deletes_late_stands_for_no_other() -> None:
    made = watch()
    made.on_messages(LONG, [message(1, "in/a.parquet", deliveries=2)], None, 0.0, 7)
    ask(made)
    made.on_looked()
    made.settle("a.parquet", 8)
    [extra] = [each for each in of(Receive, ask(made, mark=3)) if each.is_extra]
    # The first reader has deleted this message: the one in flight is another, which comes back.
    made.on_messages(extra, [], QueueDepth(0, 1), 0.0, 7)
    assert not made.is_complete(3)
    made.on_committed(8)
    then = ask(made, 1.0, mark=3)
    assert len(of(DeleteMessages, then)) == 1, "it is deleted whether the mark is complete or not"
    [extra] = of(Receive, then)
    made.on_messages(extra, [], QueueDepth(0, 0), 1.0, 7)
    assert made.is_complete(3)


def test_messages_that_come_after_a_mark_do_not_hold_it_up() -> None:
    made = watch()
    [extra] = [each for each in of(Receive, ask(made, mark=3)) if each.is_extra]
    made.on_messages(extra, [], QueueDepth(0, 0), 0.0, 7)
    comes(made, 1, "later")
    assert made.is_complete(3)


def test_the_end_gives_back_what_is_not_done_with() -> None:
    made = watch()
    assert made.release() == []
    comes(made, 1, "a")
    ask(made)
    [released] = of(ReleaseMessages, made.release())
    assert [each.message_id for each in released.messages] == ["m1"]
    assert made.on_looked() == frozenset()
    made.settle("a.parquet", 0)
    assert of(DeleteMessages, ask(made)) == []


def test_what_is_told_of_the_messages_is_counted() -> None:
    made = watch()
    comes(made, 1, "a")
    made.on_messages(LONG, [message(1, "in/a.parquet", deliveries=2)], None, 1.0, 7)
    [poison] = made.on_messages(LONG, [QueueMessage("m2", "r2", "hello", 0.0)], None, 1.0, 7)
    assert poison.message.message_id == "m2"
    state = made.state()
    assert (state["messages"], state["redelivered"], state["poison"], state["tracked"]) == (2, 1, 1, 2)
