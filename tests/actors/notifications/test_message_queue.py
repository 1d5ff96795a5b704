"""A queue gives, hides and deletes its messages, and its errors name the fault and the next step."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from botocore.stub import Stubber

from actors.notifications.message_queue import IDENTITY_TAG, OWNER_TAG, MessageQueue
from actors.notifications.message_tracker import QueueDepth, QueueMessage
from actors.sources.discovery import Notifications
from slackwater.testing.servers import s3_events
from slackwater.testing.servers.sqs_server import SqsServer
from state.clock import SystemClock
from state.errors import (
    AccessDeniedError,
    QueueNotFoundError,
    SettingsError,
    SlackwaterError,
    StorageUnavailableError,
)
from state.location import Location
from tests.actors.notifications.queue_user import user

_SECRETS = {"access_key_id": "PLANTEDxKEY", "secret_access_key": "PLANTEDxSECRET", "session_token": "PLANTEDxTOKEN"}
_AWS_QUEUE = "https://sqs.eu-central-1.amazonaws.com/111122223333/raw-events"


def queue(server: SqsServer, url: str, *, visibility_s: float = 30.0, **options: Any) -> MessageQueue:
    discovery = Notifications(queue_url=url, visibility_s=visibility_s, **{**server.options, **options})
    return MessageQueue(discovery, Location("s3://raw/in", server.storage_options))


def take(made: MessageQueue, count: int, within_s: float = 20.0) -> list[QueueMessage]:
    """Receives `count` messages, by as many requests as that takes."""
    clock = SystemClock()
    deadline = clock.monotonic() + within_s
    taken: list[QueueMessage] = []
    while len(taken) < count and clock.monotonic() < deadline:
        taken += made.receive(count - len(taken), 1.0)
    assert len(taken) == count
    return taken


def bodies(count: int) -> list[str]:
    return [s3_events.created("raw", f"in/{number}.csv", "9b2c", number) for number in range(count)]


def test_any_number_of_messages_is_received_extended_and_deleted_once(sqs: SqsServer, queue_url: str) -> None:
    made, sent = queue(sqs, queue_url), bodies(25)
    sqs.send_batch(queue_url, sent)
    assert made.depth() == QueueDepth(visible=25, in_flight=0)
    assert len(made.receive(25, 0.0)) == 10, "SQS gives no more with one request"
    taken = take(made, 15)
    assert made.depth() == QueueDepth(visible=0, in_flight=25)
    assert made.extend(taken) == 15
    assert made.delete(taken) == 15
    assert made.depth() == QueueDepth(visible=0, in_flight=10)


def test_a_message_tells_what_it_says_when_it_was_sent_and_how_often_it_came(sqs: SqsServer, queue_url: str) -> None:
    made, body = queue(sqs, queue_url), s3_events.created("raw", "in/ü +%.csv", "9b2c", 4)
    before_s = SystemClock().now().timestamp()
    sqs.send(queue_url, body)
    [message] = made.receive(10, 1.0)
    assert message.body == body and message.deliveries == 1 and message.message_id and message.receipt
    assert before_s - 1 <= message.sent_s <= SystemClock().now().timestamp() + 1


def test_nothing_is_asked_for_when_there_is_no_room() -> None:
    unreachable = Notifications(queue_url="http://127.0.0.1:1/1/q", region="us-east-1")
    made = MessageQueue(unreachable, Location("s3://raw"))
    assert made.receive(0, 20.0) == []
    assert made.delete([]) == 0 and made.extend([]) == 0


@pytest.mark.more
def test_a_long_poll_ends_with_the_first_message(sqs: SqsServer, queue_url: str) -> None:
    proxy = sqs.fault_proxy(Random(1))
    made = queue(sqs, queue_url, endpoint=proxy.endpoint)
    made.depth()
    clock, received = SystemClock(), list[QueueMessage]()
    poller = threading.Thread(target=lambda: received.extend(made.receive(10, 20.0)))
    started = clock.monotonic()
    poller.start()
    while poller.is_alive() and not received:
        # Before the poll has begun, a message would be there already; one more is no harm.
        sqs.send(queue_url, "hello")
        poller.join(0.2)
    assert received and clock.monotonic() - started < 15
    assert len(proxy.requests) == 2, "the poll was one request"


def test_a_poll_without_a_message_ends_with_none(sqs: SqsServer, queue_url: str) -> None:
    assert queue(sqs, queue_url).receive(10, 0.2) == []


@pytest.mark.more
def test_a_message_that_is_not_deleted_comes_again_and_counts_its_deliveries(sqs: SqsServer, queue_url: str) -> None:
    made = queue(sqs, queue_url, visibility_s=0.5)
    sqs.send(queue_url, "hello")
    [first] = take(made, 1)
    [again] = take(made, 1)
    assert (again.message_id, again.deliveries) == (first.message_id, 2)


@pytest.mark.more
def test_a_message_whose_visibility_is_extended_does_not_come_again(sqs: SqsServer, queue_url: str) -> None:
    short, long = queue(sqs, queue_url, visibility_s=5.0), queue(sqs, queue_url, visibility_s=600.0)
    sqs.send_batch(queue_url, ["kept", "left"])
    taken = {each.body: each for each in take(short, 2)}
    assert long.extend([taken["kept"]]) == 1
    [again] = take(short, 1)
    assert again.body == "left", "its 5 s are over, as those of the other would be"
    assert sqs.depth(queue_url).in_flight == 2


def test_a_message_that_is_given_back_can_be_received_at_once(sqs: SqsServer, queue_url: str) -> None:
    made = queue(sqs, queue_url, visibility_s=600.0)
    sqs.send_batch(queue_url, bodies(12))
    taken = take(made, 12)
    assert made.receive(10, 0.0) == []
    assert made.release(taken[:11]) == 11
    assert made.depth() == QueueDepth(visible=11, in_flight=1)
    assert {each.deliveries for each in take(made, 11)} == {2}


@pytest.mark.more
def test_a_stale_receipt_is_no_error_and_stops_no_other_one(sqs: SqsServer, queue_url: str) -> None:
    made = queue(sqs, queue_url)
    sqs.send_batch(queue_url, ["a", "b"])
    there, gone = take(made, 2)
    sqs.client().delete_message(QueueUrl=queue_url, ReceiptHandle=gone.receipt)
    unknown = QueueMessage("m", "an-unknown-receipt", "", 0.0)
    assert made.extend([gone, unknown, there]) == 1
    assert made.delete([unknown, there]) == 1
    assert made.depth() == QueueDepth(0, 0)


@pytest.mark.more
def test_a_purged_queue_is_empty_and_goes_on(sqs: SqsServer, queue_url: str) -> None:
    made = queue(sqs, queue_url)
    sqs.send_batch(queue_url, bodies(12))
    taken = take(made, 3)
    sqs.purge(queue_url)
    assert made.receive(10, 0.0) == []
    made.extend(taken)
    made.delete(taken)
    sqs.send(queue_url, "after")
    assert [each.body for each in take(made, 1)] == ["after"]


@pytest.mark.more
def test_several_pollers_share_the_messages_of_one_queue(sqs: SqsServer, queue_url: str) -> None:
    made = queue(sqs, queue_url, pollers=4)
    sqs.send_batch(queue_url, [str(number) for number in range(80)])
    taken = list[QueueMessage]()

    def poll() -> None:
        while found := made.receive(10, 0.0):
            taken.extend(found)

    pollers = [threading.Thread(target=poll) for _ in range(4)]
    for each in pollers:
        each.start()
    for each in pollers:
        each.join()
    assert {int(each.body) for each in taken} == set(range(80))
    assert len(taken) < 100, "now and then one comes to two of them, as with SQS itself"


# --- What is wrong with a queue ---------------------------------------------------------------------------------------


def test_a_queue_that_is_not_there_is_named_with_what_to_do(sqs: SqsServer, queue_url: str) -> None:
    calls: list[Callable[[MessageQueue], object]] = [
        lambda made: made.receive(10, 0.0),
        lambda made: made.delete([QueueMessage("m", "r", "", 0.0)]),
        lambda made: made.extend([QueueMessage("m", "r", "", 0.0)]),
        lambda made: made.claim("s3://lake/a"),
        lambda made: made.depth(),
    ]
    for made in (queue(sqs, queue_url + "-not"), queue(sqs, queue_url, region="eu-west-1")):
        for call in calls:
            with pytest.raises(QueueNotFoundError, match=f"{queue_url}.*create it, or correct the URL or the region"):
                call(made)


@pytest.mark.more
def test_an_endpoint_without_an_answer_is_tried_again_later() -> None:
    made = MessageQueue(Notifications(queue_url="http://127.0.0.1:1/1/q", region="us-east-1"), _location())
    with pytest.raises(StorageUnavailableError, match="cannot be reached: no connection could be made"):
        made.receive(10, 0.0)


@pytest.mark.more
def test_a_queue_without_a_region_says_where_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    _without_environment(monkeypatch)
    made = MessageQueue(Notifications(queue_url="http://127.0.0.1:1/1/q"), Location("s3://raw", _SECRETS))
    with pytest.raises(SettingsError, match=r"no region is given; give Notifications\(region=\.\.\.\)"):
        made.receive(10, 0.0)


def test_a_queue_without_credentials_says_where_to_give_them(monkeypatch: pytest.MonkeyPatch) -> None:
    _without_environment(monkeypatch)
    made = MessageQueue(Notifications(queue_url="http://127.0.0.1:1/1/q", region="us-east-1"), Location("s3://raw"))
    with pytest.raises(AccessDeniedError, match="no credentials were found; set AWS_ACCESS_KEY_ID"):
        made.depth()


def test_a_server_that_refuses_and_drops_requests_is_tried_again(sqs: SqsServer, queue_url: str) -> None:
    proxy = sqs.fault_proxy(Random(1))
    made = queue(sqs, queue_url, endpoint=proxy.endpoint)
    sqs.send(queue_url, "hello")
    proxy.on("POST", times=1).refuse()
    proxy.on("POST", times=1).reset()
    assert [each.body for each in made.receive(10, 1.0)] == ["hello"]
    assert [request.fault for request in proxy.requests] == ["refuse", "reset", None]
    proxy.on("POST").refuse()
    with pytest.raises(StorageUnavailableError, match="SQS answered 503; try again later"):
        made.depth()


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    ("code", "error", "says"),
    [
        ("InternalError", StorageUnavailableError, "answered InternalError; try again later"),
        ("RequestThrottled", StorageUnavailableError, "fewer requests"),
        ("AWS.SimpleQueueService.OverLimit", StorageUnavailableError, "in flight"),
        ("AccessDenied", AccessDeniedError, "they may sqs:DeleteMessage"),
        ("what? a secret", StorageUnavailableError, "an error without a code"),
    ],
)
def test_an_entry_that_fails_for_another_reason_is_an_error(
    sqs: SqsServer, queue_url: str, code: str, error: type[Exception], says: str
) -> None:
    made = queue(sqs, queue_url)
    failed = {"Id": "1", "SenderFault": False, "Code": code, "Message": "PLANTEDxTEXT"}
    stale = {"Id": "0", "SenderFault": True, "Code": "InvalidParameterValue", "Message": "not available"}
    with Stubber(made._client()) as stub:
        stub.add_response("delete_message_batch", {"Successful": [], "Failed": [stale, failed]})
        with pytest.raises(error, match=says) as caught:
            made.delete([QueueMessage("m", "r", "", 0.0), QueueMessage("n", "s", "", 0.0)])
    assert "PLANTED" not in str(caught.value)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("code", ["InvalidParameterValue", "MessageNotInflight", "AWS.SQS.ReceiptHandleIsInvalid"])
def test_what_sqs_says_of_a_message_that_is_not_ours_any_more_is_no_error(
    sqs: SqsServer, queue_url: str, code: str
) -> None:
    made = queue(sqs, queue_url)
    with Stubber(made._client()) as stub:
        failed = {"Id": "0", "SenderFault": True, "Code": code, "Message": ""}
        stub.add_response("change_message_visibility_batch", {"Successful": [], "Failed": [failed]})
        assert made.extend([QueueMessage("m", "r", "", 0.0)]) == 0


# --- Whose a queue is -------------------------------------------------------------------------------------------------


@pytest.mark.more
def test_a_second_root_on_one_queue_is_refused_with_both_named(sqs: SqsServer, queue_url: str) -> None:
    made = queue(sqs, queue_url)
    assert made.claim("s3://lake/a") is None
    assert made.claim("s3://lake/a") is None, "it is ours, also after a restart"
    assert sqs.client().list_queue_tags(QueueUrl=queue_url)["Tags"] == {OWNER_TAG: "s3://lake/a", IDENTITY_TAG: ""}
    with pytest.raises(SettingsError) as refused:
        queue(sqs, queue_url).claim("s3://lake/b")
    for part in ("s3://lake/a", "s3://lake/b", "SNS", f"aws sqs untag-queue --queue-url {queue_url}", OWNER_TAG):
        assert part in str(refused.value)
    sqs.client().untag_queue(QueueUrl=queue_url, TagKeys=[OWNER_TAG])
    assert queue(sqs, queue_url).claim("s3://lake/b") is None
    with pytest.raises(SettingsError, match="at s3://lake/b, and this one is at s3://lake/a"):
        made.claim("s3://lake/a")


@pytest.mark.more
def test_a_root_of_the_same_url_with_another_identity_is_refused(sqs: SqsServer, queue_url: str) -> None:
    made = queue(sqs, queue_url)
    assert made.claim("file:///data/root") is None, "before its first start a root has no identity"
    assert made.claim("file:///data/root", "11-aa") is None and made.claim("file:///data/root", "11-aa") is None
    tags = {OWNER_TAG: "file:///data/root", IDENTITY_TAG: "11-aa"}
    assert sqs.client().list_queue_tags(QueueUrl=queue_url)["Tags"] == tags
    with pytest.raises(SettingsError, match=r"at file:///data/root \(identity 11-aa\), .* \(identity 22-bb\)"):
        queue(sqs, queue_url).claim("file:///data/root", "22-bb")
    assert sqs.client().list_queue_tags(QueueUrl=queue_url)["Tags"] == tags
    sqs.client().untag_queue(QueueUrl=queue_url, TagKeys=[OWNER_TAG])
    assert queue(sqs, queue_url).claim("file:///data/root", "22-bb") is None


def test_a_root_without_identity_does_not_take_the_identity_of_the_reader_before_it(
    sqs: SqsServer, queue_url: str
) -> None:
    made = queue(sqs, queue_url)
    assert made.claim("s3://lake/a", "11-aa") is None
    sqs.client().untag_queue(QueueUrl=queue_url, TagKeys=[OWNER_TAG])
    assert made.claim("s3://lake/b") is None, "its first start"
    assert made.claim("s3://lake/b", "22-bb") is None, "its second start"


@pytest.mark.more_after(1)
@pytest.mark.parametrize("root", ["file:///data/ü&co", "file:///" + "long/" * 80])
def test_a_root_that_no_tag_can_hold_is_told_apart_all_the_same(sqs: SqsServer, queue_url: str, root: str) -> None:
    made = queue(sqs, queue_url)
    assert made.claim(root) is None and made.claim(root) is None
    tag = sqs.client().list_queue_tags(QueueUrl=queue_url)["Tags"][OWNER_TAG]
    assert len(tag) <= 256 and tag.isascii() and "&" not in tag
    with pytest.raises(SettingsError):
        made.claim(root + "x")


@pytest.mark.more
def test_a_queue_whose_tags_may_not_be_read_is_used_with_a_warning_and_wrong_keys_are_refused() -> None:
    with SqsServer() as server:
        url = server.create_queue("events")
        server.send(url, "hello")
        discovery = Notifications(queue_url=url, **server.options)  # type: ignore[arg-type]
        stranger = MessageQueue(discovery, Location("s3://raw", {**server.storage_options, **_SECRETS}))
        # The server wants the permission of the batch; on AWS the permission to delete one message is enough.
        actions = ("sqs:ReceiveMessage", "sqs:DeleteMessageBatch", "sqs:ChangeMessageVisibilityBatch")
        made = MessageQueue(discovery, Location("s3://raw", user(server, *actions)))
        warning = made.claim("s3://lake/a")
        assert warning is not None and "sqs:ListQueueTags" in warning and "a second pipeline" in warning
        messages = made.receive(10, 1.0)
        assert made.extend(messages) == made.delete(messages) == 1
        with pytest.raises(AccessDeniedError, match="sqs:GetQueueAttributes"):
            made.depth()
        with pytest.raises(AccessDeniedError, match="sqs:ReceiveMessage") as refused:
            stranger.receive(10, 0.0)
        assert "PLANTED" not in "".join(traceback.format_exception(refused.value))


def test_a_server_without_tags_is_used_with_a_warning(sqs: SqsServer, queue_url: str) -> None:
    made = queue(sqs, queue_url)
    with Stubber(made._client()) as stub:
        stub.add_client_error("list_queue_tags", "AWS.SimpleQueueService.UnsupportedOperation", http_status_code=400)
        warning = made.claim("s3://lake/a")
    assert warning is not None and "does not offer sqs:ListQueueTags" in warning


# --- Credentials ------------------------------------------------------------------------------------------------------


def _location() -> Location:
    return Location("s3://raw", {**_SECRETS, "endpoint": "http://127.0.0.1:1"})


def _without_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.more
@pytest.mark.parametrize(
    ("url", "bucket_endpoint", "shown"),
    [
        (_AWS_QUEUE, "", True),
        (_AWS_QUEUE, "https://s3.eu-central-1.amazonaws.com", True),
        (_AWS_QUEUE, "https://minio.example", False),
        (_AWS_QUEUE, "https://amazonaws.com.example", False),
        ("https://cloud.example:9324/1/q", "https://cloud.example:9000", True),
        ("https://cloud.example/1/q", "", False),
    ],
)
def test_the_keys_of_a_bucket_go_only_to_a_queue_of_the_same_provider(
    monkeypatch: pytest.MonkeyPatch, url: str, bucket_endpoint: str, shown: bool
) -> None:
    _without_environment(monkeypatch)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    options = {f"aws_{name}": value for name, value in _SECRETS.items()}
    if bucket_endpoint:
        options["endpoint"] = bucket_endpoint
    made = MessageQueue(Notifications(queue_url=url, region="eu-central-1"), Location("s3://raw", options))
    keys = made._client()._request_signer._credentials
    assert keys.access_key == (_SECRETS["access_key_id"] if shown else "from-the-environment")
    assert keys.token == (_SECRETS["session_token"] if shown else None)


@pytest.mark.more
@pytest.mark.parametrize(
    ("options", "bucket_region", "region", "endpoint"),
    [
        ({"queue_url": _AWS_QUEUE}, "us-east-2", "eu-central-1", "https://sqs.eu-central-1.amazonaws.com"),
        ({"queue_url": _AWS_QUEUE, "region": "eu-west-1"}, "", "eu-west-1", "https://sqs.eu-central-1.amazonaws.com"),
        ({"queue_url": "http://host:9324/1/q"}, "us-east-2", "us-east-2", "http://host:9324"),
        ({"queue_url": _AWS_QUEUE, "endpoint": "https://vpce-1.example"}, "", "eu-central-1", "https://vpce-1.example"),
        (
            {"queue_url": "https://vpce-1.sqs.us-gov-west-1.vpce.amazonaws.com/1/q"},
            "",
            "us-gov-west-1",
            "https://vpce-1.sqs.us-gov-west-1.vpce.amazonaws.com",
        ),
    ],
)
def test_region_and_endpoint_are_those_of_the_url_unless_they_are_given(
    options: dict[str, Any], bucket_region: str, region: str, endpoint: str
) -> None:
    bucket = {**_SECRETS, **({"region": bucket_region} if bucket_region else {})}
    client = MessageQueue(Notifications(**options), Location("s3://raw", bucket))._client()
    assert (client.meta.region_name, client.meta.endpoint_url) == (region, endpoint)


def test_no_secret_is_in_an_error_or_a_repr() -> None:
    made = MessageQueue(Notifications(queue_url="http://127.0.0.1:1/1/q", region="us-east-1"), _location())
    with pytest.raises(SlackwaterError) as caught:
        made.receive(10, 0.0)
    shown = "".join(traceback.format_exception(caught.value)) + repr(made) + repr(vars(made)["_discovery"])
    assert "PLANTED" not in shown and caught.value.__context__ is None
