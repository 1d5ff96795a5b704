"""A real SQS server on loopback: moto's."""

from __future__ import annotations

import secrets  # noqa: TID251 - credentials and an account that nobody can guess
import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from actors.message_queue import BATCH
from actors.message_tracker import QueueDepth
from slackwater.testing.fault_proxy import FaultProxy
from slackwater.testing.guarded_process import GuardedProcess
from state.clock import Clock, SystemClock
from state.errors import SettingsError, StorageUnavailableError

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_HOST = "127.0.0.1"
_REGION = "us-east-1"
_STARTS = 3
_START_S = 60.0


class SqsServer:
    """A server that speaks as SQS does, in an account of its own, for the length of a `with` block.

    It ends with the block, or with the process that started it however that ends.  It takes any credentials.

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
        self._clock = clock or SystemClock()
        self._account = str(secrets.randbelow(9 * 10**11) + 10**11)
        self._access_key_id = secrets.token_hex(10).upper()
        self._secret_access_key = secrets.token_hex(20)
        self._process: GuardedProcess | None = None
        self._port = 0
        self._proxies: list[FaultProxy] = []
        self.pid = 0

    def __enter__(self) -> SqsServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"SqsServer({self.endpoint!r})"

    @property
    def endpoint(self) -> str:
        """The URL of the server."""
        return f"http://{_HOST}:{self._port}"

    @property
    def options(self) -> dict[str, str]:
        """What leads `Notifications(...)` to the server."""
        return {"region": _REGION, "endpoint": self.endpoint}

    @property
    def storage_options(self) -> dict[str, str]:
        """Credentials for a source whose bucket is on no server of its own."""
        return self._storage_options(self.endpoint)

    def start(self) -> None:
        """Starts the server and waits until it answers; a port that somebody else took meanwhile costs a second try."""
        last_words = ""
        for _ in range(_STARTS):
            self._port = _free_port()
            self._process = GuardedProcess(
                [_program(), "-H", _HOST, "-p", str(self._port)], environment={"MOTO_ACCOUNT_ID": self._account}
            )
            self.pid = self._process.pid
            if self._answers(self._process):
                return
            last_words = self._process.last_words()
            self.stop()
        raise StorageUnavailableError(
            f"the SQS server did not answer after {_STARTS} starts; the end of its log: {last_words}"
        )

    def stop(self) -> None:
        """Kills the server; its queues are gone."""
        for proxy in self._proxies:
            proxy.close()
        self._proxies.clear()
        if self._process is not None:
            self._process.stop()
            self._process = None

    def client(self, service: str = "sqs") -> Any:
        """A boto3 client of the server; it offers more than queues, IAM for one."""
        import boto3

        session: Any = boto3.Session()
        return session.client(
            service,
            endpoint_url=self.endpoint,
            region_name=_REGION,
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
        """How many messages a queue holds; here it is exact."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.client().get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return QueueDepth(*(int(found[name]) for name in names))

    def fault_proxy(self, random: Random) -> FaultProxy:
        """A second endpoint that can lose, delay and damage what passes (all is `POST`); it ends with the server."""
        proxy = FaultProxy(_HOST, self._port, self._storage_options, random)
        self._proxies.append(proxy)
        return proxy

    def _storage_options(self, endpoint: str) -> dict[str, str]:
        return {
            "endpoint": endpoint,
            "access_key_id": self._access_key_id,
            "secret_access_key": self._secret_access_key,
            "region": _REGION,
            "allow_http": "true",
        }

    def _answers(self, process: GuardedProcess) -> bool:
        """Whether the server of our account answers in time.  Another one on our port would name another account."""
        from botocore.exceptions import BotoCoreError, ClientError

        client = self.client("sts")
        deadline = self._clock.monotonic() + _START_S
        while self._clock.monotonic() < deadline and process.is_running:
            try:
                return bool(client.get_caller_identity()["Account"] == self._account)
            except (BotoCoreError, ClientError):
                self._clock.sleep(0.05)
        return False


def _program() -> str:
    beside_python = Path(sys.executable).with_name("moto_server")
    found = str(beside_python) if beside_python.exists() else shutil.which("moto_server")
    if not found:
        raise SettingsError("the SQS server of the tests is not installed: pip install moto flask flask-cors")
    return found


def _free_port() -> int:
    with socket.socket() as made:
        made.bind((_HOST, 0))
        return int(made.getsockname()[1])
