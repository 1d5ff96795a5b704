"""The list step on real servers: a file is in the ledger once, and its message in the queue until then."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

import slackwater as sw
from actors.notifications.message_tracker import QueueDepth
from actors.sources.source import OnChange
from slackwater.testing.servers import s3_events
from slackwater.testing.servers.s3_server import S3Server
from slackwater.testing.servers.sqs_server import SqsServer
from tests.actors.notifications.bucket_events import event_bridge
from tests.actors.notifications.list_run import ListRun, eventually
from tests.actors.notifications.notifying_bucket import NotifyingBucket
from tests.actors.notifications.queue_user import user

pytestmark = pytest.mark.usefixtures("short_polls")


def pipeline(
    told: NotifyingBucket,
    root: Path,
    *,
    discovery: sw.Listing | sw.Notifications | None = None,
    options: dict[str, str] | None = None,
    on_change: OnChange = "ignore",
    **notifications: Any,
) -> sw.Pipeline:
    made = sw.Pipeline("events", root)
    made.source(
        "events",
        told.url,
        format="json",
        schema="x bigint",
        discovery=discovery or by_events(told, **notifications),
        storage_options=options or told.s3.storage_options,
        on_change=on_change,
        materialize=on_change == "replace",
    )
    made.view("all", "SELECT x FROM events")
    return made


def by_events(told: NotifyingBucket, **options: Any) -> sw.Notifications:
    return sw.Notifications(queue_url=told.queue_url, **{**told.sqs.options, "visibility_s": 30.0, **options})


@pytest.mark.more
def test_a_bucket_is_listed_once_and_then_events_tell_of_what_comes(told: NotifyingBucket, tmp_path: Path) -> None:
    for number in range(12):
        told.s3.put(told.name, f"in/before/{number}", b"x")
    proxy = told.s3.proxy()
    made = pipeline(told, tmp_path / "root", options=proxy.storage_options)
    with closing(proxy), ListRun(made) as run:
        run.catch_up()
        assert len(run.files) == 12
        with proxy.recording() as requests:
            for number in range(25):
                told.put(f"after/{number}")
            run.catch_up()
        assert len(run.files) == 37 and all(statuses == ["done"] for statuses in run.files.values())
        assert sorted(run.handed_on) == sorted(run.files), "each once"
        assert not [each for each in requests if each.is_list]
        heads = [each.key for each in requests if each.method == "HEAD"]
        # One by the list step, and one by what reads here.
        assert sorted(heads) == sorted(2 * [f"in/after/{number}" for number in range(25)])
        run.until(lambda: told.is_drained)
        assert (run.messages.received, run.messages.deleted, run.messages.tracked) == (25, 25, 0)


@pytest.mark.more
def test_events_that_come_often_late_and_in_the_wrong_order_hand_a_file_on_once(
    told: NotifyingBucket, tmp_path: Path
) -> None:
    with ListRun(pipeline(told, tmp_path / "root")) as run:
        run.catch_up()
        etags = [told.put(f"{number}", tells=3) for number in range(10)]
        # What was removed first, and written again, is told of the other way round.
        told.send(*(s3_events.removed(told.name, f"in/{number}") for number in range(10)))
        run.catch_up()
        told.send(*(s3_events.created(told.name, f"in/{number}", etags[number], 1) for number in reversed(range(10))))
        run.catch_up()
        run.until(lambda: told.is_drained)
        assert run.files == {str(number): ["done"] for number in range(10)}
        assert sorted(run.handed_on) == sorted(run.files)
        assert run.gone == set()


@pytest.mark.more
def test_a_message_is_kept_invisible_for_as_long_as_its_file_takes(told: NotifyingBucket, tmp_path: Path) -> None:
    with ListRun(pipeline(told, tmp_path / "root", visibility_s=6.0), reads=False) as run:
        run.catch_up()
        told.put("slow")
        eventually(lambda: run.handed_on == ["slow"])
        until_s = time.monotonic() + 15.0

        def is_over() -> bool:
            assert told.depth == QueueDepth(0, 1)
            return time.monotonic() > until_s

        eventually(is_over)
        assert (run.messages.received, run.messages.redelivered) == (1, 0)
        run.commit()
        eventually(lambda: told.is_drained)


@pytest.mark.more
def test_a_message_that_is_received_again_while_it_is_worked_on_is_the_same_one(
    told: NotifyingBucket, tmp_path: Path
) -> None:
    with ListRun(pipeline(told, tmp_path / "root")) as run:
        run.catch_up()
        told.put("a")
        eventually(lambda: run.handed_on == ["a"])
        for times in (1, 2):
            # As if its visibility had passed.
            run.queue.release(run.tracked)
            eventually(lambda: run.messages.redelivered == times)  # noqa: B023
        assert (run.messages.received, run.handed_on) == (1, ["a"])
        run.commit()
        eventually(lambda: told.is_drained)


@pytest.mark.more
def test_what_a_purged_queue_has_lost_the_next_listing_finds(told: NotifyingBucket, tmp_path: Path) -> None:
    made = pipeline(told, tmp_path / "root", relist_interval_s=2.0)
    told.put("before")
    with ListRun(made) as run:
        run.catch_up()
        run.finish()
    told.put("lost")
    told.sqs.purge(told.queue_url)
    with ListRun(made) as run:
        run.until(lambda: "lost" in run.files)
        assert run.handed_on == ["lost"] and run.messages.received == 0
        listings = run.progress.listings
        told.put("told")
        run.until(lambda: run.progress.listings >= listings + 2)
        run.catch_up()
        assert run.files == {name: ["done"] for name in ("before", "lost", "told")}
        assert run.handed_on == ["lost", "told"], "a listing shows what a look has shown"


def poison_of(told: NotifyingBucket) -> dict[str, str]:
    """Body → the reason."""
    return {
        "hello": "is not JSON",
        "[1, 2]": "not a JSON object",
        '{"Records": [{"eventName": "ObjectCreated:Put"}]}': "without 's3'",
        '{"answer": 42}': "not an event of S3",
        s3_events.created("another", "in/x", '"1"', 1): "about the bucket 'another'",
        s3_events.sns("hello"): "that SNS has wrapped is not JSON",
    }


@pytest.mark.more
def test_poison_is_kept_with_its_text_and_leaves_the_queue_and_test_events_only_leave(
    told: NotifyingBucket, tmp_path: Path
) -> None:
    poison, made = poison_of(told), pipeline(told, tmp_path / "root", visibility_s=2.0)
    told.send(*poison, s3_events.test_event(told.name), s3_events.created(told.name, "out/x", '"1"', 1))
    with ListRun(made) as run:
        eventually(lambda: run.messages.poison == len(poison))
        # It dies before anything is committed.
    with ListRun(made) as run:
        run.until(lambda: run.messages.poison == len(poison))
        run.catch_up()
        run.until(lambda: told.is_drained)
        assert run.messages.redelivered >= len(poison) and run.handed_on == []
    found = sw.open(tmp_path / "root").ledger.quarantine("events").to_pylist()
    assert {row["raw"].decode() for row in found} == set(poison) and len(found) == len(poison)
    for row in found:
        assert poison[row["raw"].decode()] in row["reason"]
        assert row["path"].startswith(f"{told.queue_url}#") and row["row"] is None


@pytest.mark.more
@pytest.mark.parametrize(
    ("on_change", "statuses"),
    [
        pytest.param("ignore", ["done"], marks=pytest.mark.more),
        pytest.param("append", ["done", "done"], marks=pytest.mark.more),
        ("replace", ["done", "replaced"]),
    ],
)
def test_an_object_that_is_written_again_is_treated_as_the_source_says(
    told: NotifyingBucket, tmp_path: Path, on_change: OnChange, statuses: list[str]
) -> None:
    made = pipeline(told, tmp_path / "root", on_change=on_change, relist_interval_s=2.0)
    told.put("a")
    with ListRun(made) as run:
        run.catch_up()
        told.put("a", b"another")
        run.catch_up()
        assert sorted(run.files["a"]) == statuses
        [old] = [row for row in run.rows("ledger") if row["size"] == 1]
        assert (old["changed_epoch"] is not None) and old["deleted_epoch"] is None
        handed_on, listings = list(run.handed_on), run.progress.listings
        run.until(lambda: run.progress.listings >= listings + 2)
        assert run.handed_on == handed_on == ["a", "a"]
        assert told.is_drained


@pytest.mark.more
def test_copies_and_uploads_in_parts_are_read_as_any_object_is(told: NotifyingBucket, tmp_path: Path) -> None:
    client, key = told.client, "in/in parts ü+%.json"
    with ListRun(pipeline(told, tmp_path / "root", relist_interval_s=2.0)) as run:
        told.put("a", b"some")
        run.catch_up()
        client.copy_object(Bucket=told.name, Key="in/copy", CopySource={"Bucket": told.name, "Key": "in/a"})
        upload = client.create_multipart_upload(Bucket=told.name, Key=key)["UploadId"]
        which = {"Bucket": told.name, "Key": key, "UploadId": upload}
        parts = [
            {"PartNumber": number, "ETag": client.upload_part(**which, PartNumber=number, Body=content)["ETag"]}
            for number, content in ((1, b"x" * (5 << 20)), (2, b"y"))
        ]
        client.complete_multipart_upload(**which, MultipartUpload={"Parts": parts})
        told.send(
            s3_events.created(told.name, "in/copy", '"0"', 4, kind="Copy"),
            s3_events.created(told.name, key, '"0-2"', (5 << 20) + 1, kind="CompleteMultipartUpload"),
        )
        run.catch_up()
        sizes = {row["path"]: row["size"] for row in run.rows("ledger")}
        assert sizes == {"a": 4, "copy": 4, "in parts ü+%.json": (5 << 20) + 1}
        listings = run.progress.listings
        run.until(lambda: run.progress.listings >= listings + 2)
        assert sorted(run.handed_on) == sorted(sizes), "a listing shows what a look has shown"
        assert told.is_drained


# --- Objects that are removed -----------------------------------------------------------------------------------------


@pytest.mark.more
def test_what_was_removed_before_its_event_came_is_nothing_and_what_was_known_is_deleted(
    told: NotifyingBucket, tmp_path: Path
) -> None:
    with ListRun(pipeline(told, tmp_path / "root")) as run:
        told.put("stays")
        told.put("goes")
        run.catch_up()
        told.put("never seen", tells=0)
        told.remove("never seen")
        told.remove("goes", tells=2)
        run.until(lambda: told.is_drained)
        assert (run.files, run.gone) == ({"stays": ["done"], "goes": ["done"]}, {"goes"})
        told.remove("goes")
        epoch = run.rows("ledger")
        run.until(lambda: told.is_drained)
        assert run.rows("ledger") == epoch, "noted once"


@pytest.mark.more
def test_what_is_removed_before_it_is_read_vanishes_and_is_read_when_it_is_back(
    told: NotifyingBucket, tmp_path: Path
) -> None:
    with ListRun(pipeline(told, tmp_path / "root"), reads=False) as run:
        run.catch_up()
        told.put("a")
        eventually(lambda: run.handed_on == ["a"])
        run.commit()
        told.remove("a")
        run.reads = True
        run.until(lambda: run.files == {"a": ["vanished"]} and told.is_drained)
        told.put("a")
        run.until(lambda: "done" in run.files["a"] and told.is_drained)


@pytest.mark.more
def test_what_is_removed_while_it_waits_to_be_handed_on_is_handed_on_once_and_vanishes(
    told: NotifyingBucket, tmp_path: Path
) -> None:
    with ListRun(pipeline(told, tmp_path / "root")) as run:
        run.catch_up()
        run.budget = 0
        run.commit()
        told.put("a")
        eventually(lambda: run.progress.held == 1)
        told.remove("a")
        run.budget = 10
        run.until(lambda: run.files == {"a": ["vanished"]} and told.is_drained)
        assert run.handed_on == ["a"]


@pytest.mark.more
def test_where_changes_replace_the_rows_of_a_removed_object_go_and_come_back_with_it(
    sqs: SqsServer, queue_url: str, tmp_path: Path
) -> None:
    """With a bucket of versions: a delete marker comes and goes."""
    client, name = sqs.client("s3"), f"versions-{queue_url.rpartition('/')[2]}"
    client.create_bucket(Bucket=name)
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    arn = sqs.client().get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sent = {"QueueArn": arn, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}
    client.put_bucket_notification_configuration(Bucket=name, NotificationConfiguration={"QueueConfigurations": [sent]})
    made = sw.Pipeline("events", tmp_path / "root")
    discovery = sw.Notifications(queue_url=queue_url, **sqs.options)  # type: ignore[arg-type]
    options = {"discovery": discovery, "storage_options": sqs.storage_options, "on_change": "replace"}
    made.source("events", f"s3://{name}/in", format="json", schema="x bigint", materialize=True, **options)  # type: ignore[arg-type]
    made.view("all", "SELECT x FROM events")

    def drained() -> bool:
        return sqs.depth(queue_url) == QueueDepth(0, 0)

    client.put_object(Bucket=name, Key="in/a", Body=b"1")
    client.put_object(Bucket=name, Key="in/b", Body=b"1")
    with ListRun(made) as run:
        run.catch_up()
        client.put_object(Bucket=name, Key="in/a", Body=b"22")
        run.until(lambda: sorted(run.files["a"]) == ["done", "replaced"] and drained())
        # Of what is removed from a bucket with versions moto sends nothing.
        marker = client.delete_object(Bucket=name, Key="in/a")["VersionId"]
        sqs.send(queue_url, s3_events.removed(name, "in/a", kind="DeleteMarkerCreated", version_id=marker))
        run.until(lambda: sorted(run.files["a"]) == ["forgotten", "replaced"] and drained())
        assert run.gone == {"a"}
        handed_on = len(run.handed_on)
        client.delete_object(Bucket=name, Key="in/a", VersionId=marker)
        sqs.send(queue_url, s3_events.removed(name, "in/a", version_id=marker))
        run.until(lambda: sorted(run.files["a"]) == ["done", "replaced"] and drained())
        assert run.handed_on[handed_on:] == ["a"], "the same version is back, and is read once"
        # An older version goes for good: nothing changes.
        [old] = [
            each["VersionId"]
            for each in client.list_object_versions(Bucket=name, Prefix="in/a")["Versions"]
            if not each["IsLatest"]
        ]
        client.delete_object(Bucket=name, Key="in/a", VersionId=old)
        sqs.send(queue_url, s3_events.removed(name, "in/a", version_id=old))
        run.catch_up()
        run.until(drained)
        assert sorted(run.files["a"]) == ["done", "replaced"] and len(run.handed_on) == handed_on + 1


# --- Crashes and stops ------------------------------------------------------------------------------------------------


@pytest.mark.more
def test_a_crash_before_the_commit_makes_messages_come_again_and_their_files_are_handed_on_again(
    told: NotifyingBucket, tmp_path: Path
) -> None:
    made = pipeline(told, tmp_path / "root", visibility_s=2.0)
    told.put("first")
    with ListRun(made) as run:
        run.catch_up()
        told.put("a")
        told.put("b")
        eventually(lambda: sorted(run.handed_on) == ["a", "b", "first"])
    with ListRun(made) as run:
        run.catch_up()
        assert sorted(run.handed_on) == ["a", "b"]
        assert run.files == {name: ["done"] for name in ("a", "b", "first")}
        run.until(lambda: told.is_drained)
        assert run.messages.redelivered >= 2


def test_a_crash_between_the_commit_and_the_deletion_makes_messages_come_again_and_they_are_recognised(
    told: NotifyingBucket, tmp_path: Path
) -> None:
    made = pipeline(told, tmp_path / "root", visibility_s=2.0)
    with ListRun(made) as run:
        run.catch_up()
        told.put("a")
        eventually(lambda: run.handed_on == ["a"])
        run.commit(tells=False)
        assert run.files == {"a": ["done"]} and told.depth == QueueDepth(0, 1)
    with ListRun(made) as run:
        run.catch_up()
        assert (run.handed_on, run.files) == ([], {"a": ["done"]})
        run.until(lambda: told.is_drained)
        assert run.messages.redelivered == 1


@pytest.mark.more
def test_a_stop_gives_back_what_is_not_done_and_deletes_what_is(told: NotifyingBucket, tmp_path: Path) -> None:
    made = pipeline(told, tmp_path / "root", visibility_s=600.0)
    with ListRun(made) as run:
        run.catch_up()
        told.put("done")
        run.until(lambda: "done" in run.files)
        run.budget = 0
        run.commit()
        told.put("held")
        eventually(lambda: run.progress.held == 1)
        run.stop()
        assert told.depth == QueueDepth(visible=1, in_flight=0), "at once"
    with ListRun(made) as run:
        run.catch_up()
        assert run.handed_on == ["held"]
        run.until(lambda: told.is_drained)


@pytest.mark.more
def test_a_stop_waits_until_what_is_done_is_deleted(told: NotifyingBucket, tmp_path: Path) -> None:
    with closing(told.sqs.fault_proxy(Random(1))) as proxy:
        made = pipeline(told, tmp_path / "root", visibility_s=600.0, endpoint=proxy.endpoint)
        with ListRun(made) as run:
            run.catch_up()
            told.put("a")
            eventually(lambda: run.handed_on == ["a"])
            run.commit(tells=False)
            proxy.on("POST").slow(0.5)
            run.tell_committed()
            run.stop()
            assert told.is_drained


@pytest.mark.more
def test_what_a_poll_receives_after_the_stop_is_given_back(
    told: NotifyingBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.notifications.event_watch._LONG_POLL_S", 5.0)
    with ListRun(pipeline(told, tmp_path / "root", visibility_s=600.0)) as run:
        run.catch_up()
        run.stop()
        assert run.is_busy, "two polls are under way"
        told.put("a")
        eventually(lambda: not run.is_busy)
        [message] = run.queue.receive(10, 1.0)
        assert message.deliveries >= 2


# --- One queue, one pipeline ------------------------------------------------------------------------------------------


@pytest.mark.more
def test_a_second_pipeline_on_a_queue_is_refused_and_takes_nothing_from_it(
    told: NotifyingBucket, tmp_path: Path
) -> None:
    with ListRun(pipeline(told, tmp_path / "first")) as first:
        first.catch_up()
        first.finish()
    told.put("a")
    with ListRun(pipeline(told, tmp_path / "second")) as second:
        eventually(lambda: second.failure is not None)
        assert isinstance(second.failure, sw.errors.SettingsError) and "SNS" in str(second.failure)
        assert str(tmp_path / "first") in str(second.failure) and str(tmp_path / "second") in str(second.failure)
        eventually(lambda: not second.is_busy)
        assert told.depth == QueueDepth(1, 0)


@pytest.mark.more
def test_that_the_tags_of_a_queue_may_not_be_read_is_said_once(
    s3: S3Server, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqsServer() as server:
        told = NotifyingBucket(s3, bucket, server, server.create_queue("events"))
        told.put("a")
        actions = ["ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch", "GetQueueAttributes"]
        keys = user(server, *(f"sqs:{action}" for action in actions))
        # Under another name than the bucket's the server is a stranger, which is not shown the bucket's keys.
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys["access_key_id"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys["secret_access_key"])
        elsewhere = server.endpoint.replace("127.0.0.1", "localhost")
        with ListRun(pipeline(told, tmp_path / "root", endpoint=elsewhere, relist_interval_s=1.0)) as run:
            run.catch_up()
            run.until(lambda: run.progress.listings >= 3 and run.messages.deleted == 1)
            [warning] = run.log
            assert "sqs:ListQueueTags" in warning and "a second pipeline" in warning


# --- From one discovery to the other ----------------------------------------------------------------------------------


@pytest.mark.more
def test_a_root_goes_from_one_discovery_to_the_other_and_back(told: NotifyingBucket, tmp_path: Path) -> None:
    root, listing = tmp_path / "root", sw.Listing(interval_s=0.5)
    stories = [("listing", listing), ("events", None), ("listing", listing), ("events", None), ("events", None)]
    handed_on: list[str] = []
    for number, (kind, discovery) in enumerate(stories):
        told.put(f"{number} in the gap")
        with ListRun(pipeline(told, root, discovery=discovery)) as run:
            run.catch_up()
            told.put(f"{number} {kind}")
            run.catch_up()
            handed_on += run.handed_on
            listings = run.progress.listings
            files = run.files
            run.finish()
    assert listings == 0, "events have told of everything since the last listing"
    assert sorted(handed_on) == sorted(files) and len(files) == 10
    with ListRun(pipeline(told, root)) as run:
        run.catch_up()
        run.until(lambda: told.is_drained)
        assert run.handed_on == []


@pytest.mark.more
def test_names_that_cannot_be_read_end_no_run(told: NotifyingBucket, tmp_path: Path) -> None:
    with ListRun(pipeline(told, tmp_path / "root")) as run:
        run.catch_up()
        told.client.put_object(Bucket=told.name, Key="in/x\ny", Body=b"x")
        bucket = {"bucket": {"name": told.name}}
        told.send(*(event_bridge(detail=bucket, key=f"in/{name}") for name in ["x\ny", *FORGED]))
        told.put("plain")
        run.catch_up()
        assert run.failure is None
        assert sorted(run.handed_on) == ["plain", "x\ny"], "the read refuses a name, with the reason"
        run.until(lambda: told.is_drained)


FORGED = ["../x", "a/../../x", ".", "..", "a//b", "/x", "x\x00", "\ud800", "y" * 2_000, "%2e%2e/x"]


@pytest.mark.more
def test_a_look_that_is_refused_for_one_object_ends_no_run(told: NotifyingBucket, tmp_path: Path) -> None:
    with closing(told.s3.fault_proxy(Random(1))) as proxy:
        made = pipeline(told, tmp_path / "root", options=proxy.storage_options)
        with ListRun(made) as run:
            run.catch_up()
            proxy.on("HEAD", "in/archived").deny()
            proxy.on("HEAD", "in/once", times=1).deny()
            for name in ("archived", "once", "plain"):
                told.put(name)
            told.remove("archived-and-removed")
            run.catch_up()
            assert run.failure is None
            assert sorted(run.handed_on) == ["archived", "once", "plain"], "the read refuses a name, with the reason"
            run.until(lambda: told.is_drained)
            assert len(proxy.met("deny")) >= 2


# --- What is wrong with a queue ---------------------------------------------------------------------------------------


@pytest.mark.more
def test_a_queue_that_is_deleted_ends_the_run_with_what_to_do(told: NotifyingBucket, tmp_path: Path) -> None:
    with ListRun(pipeline(told, tmp_path / "root")) as run:
        run.catch_up()
        told.sqs.client().delete_queue(QueueUrl=told.queue_url)
        eventually(lambda: isinstance(run.failure, sw.errors.QueueNotFoundError))
        assert f"{told.queue_url}: there is no such queue" in str(run.failure)


@pytest.mark.more
def test_a_queue_that_does_not_answer_fails_the_attempt_and_the_next_one_goes_on(
    told: NotifyingBucket, tmp_path: Path
) -> None:
    with closing(told.sqs.fault_proxy(Random(1))) as proxy:
        made = pipeline(told, tmp_path / "root", endpoint=proxy.endpoint, visibility_s=2.0)
        with ListRun(made) as run:
            run.catch_up()
            told.put("a")
            eventually(lambda: run.handed_on == ["a"])
            proxy.on("POST").refuse()
            eventually(lambda: isinstance(run.failure, sw.errors.StorageUnavailableError))
        proxy.heal()
        with ListRun(made) as run:
            run.catch_up()
            assert run.files == {"a": ["done"]}
            run.until(lambda: told.is_drained)
