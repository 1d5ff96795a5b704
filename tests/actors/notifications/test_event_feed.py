"""Every object that a message names is looked at once, and only if it is the source's."""

from __future__ import annotations

import json

from actors.notifications.message_tracker import QueueMessage
from state.tables.delta import DeltaBuilder
from tests.actors.notifications.bucket_events import direct, feed, message, record


def test_paths_are_taken_in_their_order_and_each_once() -> None:
    made = feed()
    made.receive([message(1, "in/a.parquet", "in/b.parquet"), message(2, "in/a.parquet", "in/c.parquet")], 0.0, 7)
    assert made.take_paths(2) == ["a.parquet", "b.parquet"]
    assert made.take_paths(9) == ["c.parquet"]
    made.receive([message(3, "in/a.parquet")], 1.0, 7)
    assert made.take_paths(9) == ["a.parquet"], "it may have changed since it was looked at"


def test_a_message_that_comes_again_while_it_is_worked_on_asks_for_nothing() -> None:
    made = feed()
    made.receive([message(1, "in/a.parquet")], 0.0, 7)
    assert made.take_paths(9) == ["a.parquet"]
    made.receive([message(1, "in/a.parquet", deliveries=2)], 70.0, 7)
    assert made.take_paths(9) == []
    assert made.tracker.redelivered == 1


def test_what_is_not_the_sources_is_done_with_at_once() -> None:
    made = feed()
    made.receive([message(1, "out/a.parquet", "in/a.csv", "in/_hidden.parquet")], 0.0, 7)
    assert made.take_paths(9) == []
    assert [each.message_id for each in made.tracker.take_done()] == ["m1"]


def test_poison_is_told_with_its_reason_and_done_with_when_that_is_committed() -> None:
    made = feed()
    foreign = json.loads(direct(record()))
    foreign["Records"][0]["s3"]["bucket"]["name"] = "other"
    messages = [
        QueueMessage(f"p{number}", "r", body, 0.0) for number, body in enumerate(["hello", json.dumps(foreign)])
    ]
    poison = made.receive(messages, 0.0, 7)
    assert [(each.message.message_id, each.reason) for each in poison] == [
        ("p0", "the message is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("p1", "it is about the bucket 'other', and the source reads 'raw'"),
    ]
    assert made.receive(messages, 70.0, 8) == [], "it is known while it is tracked"
    assert made.tracker.take_done() == []
    made.tracker.on_committed(7)
    assert len(made.tracker.take_done()) == 2
    delta = DeltaBuilder()
    poison[0].quarantine(delta, "s")
    [row] = delta.build().tables["quarantine"].to_pylist()
    assert (row["row"]["path"], row["row"]["raw"], row["row"]["row"]) == ("https://sqs/raw#p0", b"hello", None)


def test_no_more_messages_are_received_than_can_be_tracked() -> None:
    made = feed(most_messages=2)
    assert made.room == 2
    made.receive([message(number, f"in/{number}.parquet") for number in range(3)], 0.0, 7)
    assert made.room == 0
    for path in made.take_paths(2):
        made.tracker.on_looked(path, again=False)
        made.tracker.settle(path, 0)
    made.tracker.take_done()
    assert made.room == 1
