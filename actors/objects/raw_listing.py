"""A page of a bucket as it is, whatever its names are."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from actors.objects.listing_page import LISTED, microseconds_of
from state.errors import StorageUnavailableError
from state.location import Location
from state.objects.object_client import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, endpoint_of

_ATTEMPTS = 5


class RawListing:
    """Pages of one listing, by boto3; it connects at the first one.

    obstore gives up a whole page for one key with a control character, or with `.`, `..` or nothing between slashes.

    Args:
        location: in S3.
    """

    def __init__(self, location: Location) -> None:
        self._location = location

    def page(self, after: str | None) -> tuple[pa.Table, str, bool]:
        """The next page, its last name, and whether it is the last page.  One request.

        Args:
            after: only names behind this one, relative to the location.

        Returns:
            As `LISTED`, without empty objects that stand for directories.

        Raises:
            StorageUnavailableError: the store did not answer, or refused.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        bucket, below = self._location.host.url.removeprefix("s3://"), self._location.below_host
        start = {} if after is None else {"StartAfter": below + after}
        try:
            # boto3 asks for names in percent-encoding, so that any survives the answer's XML.
            answer = self._client.list_objects_v2(Bucket=bucket, Prefix=below, **start)
        except (BotoCoreError, ClientError) as error:
            kind = error.response["Error"].get("Code", "") if isinstance(error, ClientError) else type(error).__name__
            raise StorageUnavailableError(f"{self._location}: the listing failed ({kind}); try again later") from None
        objects = answer.get("Contents", [])
        rows = [_row(each, len(below)) for each in objects if each["Size"] or not each["Key"].endswith("/")]
        columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(LISTED)
        last = objects[-1]["Key"][len(below) :] if objects else ""
        return pa.table(columns, schema=LISTED), last, not answer["IsTruncated"]

    @cached_property
    def _client(self) -> Any:
        return _connected(self._location)


def _row(listed: dict[str, Any], below: int) -> tuple[str, str, int, int]:
    modified: datetime = listed["LastModified"]
    return listed["Key"][below:].rstrip("/"), listed.get("ETag", ""), listed["Size"], microseconds_of(modified)


def _connected(location: Location) -> Any:
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    options = {name.removeprefix("aws_"): value for name, value in location.storage_options.items()}
    config: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "read_timeout": READ_TIMEOUT_S,
        "retries": {"total_max_attempts": _ATTEMPTS, "mode": "standard"},
    }
    if options.get("skip_signature") == "true":
        config["signature_version"] = UNSIGNED
    if options.get("virtual_hosted_style_request") != "true":
        config["s3"] = {"addressing_style": "path"}
    return boto3.client(
        "s3",
        endpoint_url=endpoint_of(location) or None,
        region_name=options.get("region"),
        aws_access_key_id=options.get("access_key_id"),
        aws_secret_access_key=options.get("secret_access_key"),
        aws_session_token=options.get("session_token") or options.get("token"),
        config=Config(**config),
    )
