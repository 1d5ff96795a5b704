"""A real SQS server on loopback: moto's."""

from __future__ import annotations

import secrets  # noqa: TID251 - an account that cannot be guessed
from collections.abc import Sequence
from typing import Any

from actors.notifications.message_queue import BATCH
from actors.notifications.message_tracker import QueueDepth
from slackwater.testing.servers.free_ports import HOST, free_ports
from slackwater.testing.servers.guarded_process import GuardedProcess
from slackwater.testing.servers.guarded_server import REGION, GuardedServer, program
from state.clock import Clock

_INSTALL = "the SQS server of the tests is not installed: pip install moto flask flask-cors"


class SqsServer(GuardedServer):
    """A server that speaks as SQS does, in an account of its own, for the length of a `with` block.

    It takes any credentials.

    Args:
        clock: paces the waiting for the first answer.

    Raises:
        SettingsError: the server's program is not installed.
        StorageUnavailableError: it did not start; the message has the end of its log.

    Example:
        >>> with SqsServer() as server:
        ...     url = server.create_queue("events", VisibilityTimeout="30")
        ...     server.send(url, s3_events.created("raw", "a.csv", '"9b2c"', 4))
        ...     discovery = Notifications(queue_url=url, **server.options)
    """

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__("SQS", clock)
        self._account = str(secrets.randbelow(9 * 10**11) + 10**11)

    @property
    def options(self) -> dict[str, str]:
        """The options with which `Notifications(...)` reaches the server."""
        return {"region": REGION, "endpoint": self.endpoint}

    def client(self, service: str = "sqs") -> Any:
        """A boto3 client of the server; it offers more than queues, IAM for one."""
        import boto3

        session: Any = boto3.Session()
        return session.client(
            service,
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=self._access_key_id,
            aws_secret_access_key=self._secret_access_key,
        )

    def create_queue(self, name: str, **attributes: str) -> str:
        """Makes a queue, with attributes in SQS's names; returns its URL."""
        url: str = self.client().create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return url

    def send(self, url: str, body: str) -> None:
        """Puts one message into a queue."""
        self.client().send_message(QueueUrl=url, MessageBody=body)

    def send_batch(self, url: str, bodies: Sequence[str]) -> None:
        """Puts any number of messages into a queue, ten with a request."""
        client = self.client()
        for start in range(0, len(bodies), BATCH):
            batch = enumerate(bodies[start : start + BATCH])
            client.send_message_batch(
                QueueUrl=url, Entries=[{"Id": str(number), "MessageBody": body} for number, body in batch]
            )

    def purge(self, url: str) -> None:
        """Deletes all messages of a queue, received or not."""
        self.client().purge_queue(QueueUrl=url)

    def depth(self, url: str) -> QueueDepth:
        """The number of messages of a queue; here it is exact."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.client().get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return QueueDepth(*(int(found[name]) for name in names))

    def _spawn(self) -> GuardedProcess:
        [self._port] = free_ports(1)
        self._identity = self.client("sts")
        command = [program("moto_server", _INSTALL), "-H", HOST, "-p", str(self._port)]
        return GuardedProcess(command, environment={"MOTO_ACCOUNT_ID": self._account})

    def _is_ours(self) -> bool | None:
        """Another server on our port would name another account."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return bool(self._identity.get_caller_identity()["Account"] == self._account)
        except (BotoCoreError, ClientError):
            return None
