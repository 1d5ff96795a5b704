"""Requests to a bucket in S3 by boto3, for what obstore does not ask: odd names, conditions of deletions, tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from actors.file_errors import ObjectChanged, ObjectVanished
from actors.objects.store_errors import bucket_not_found
from state.errors import AccessDeniedError, StorageUnavailableError
from state.location import Location
from state.objects.object_client import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, endpoint_of
from state.objects.store_faults import DENIED_CODES

_Answer = TypeVar("_Answer")

_ATTEMPTS = 5
_CONNECTIONS = 32
_VANISHED = ("NoSuchKey", "404")
_CHANGED = ("PreconditionFailed", "412")


def bucket_client(location: Location) -> Any:
    """A client of boto3 for the bucket of a location; it is safe to use from many threads."""
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    options = {name.removeprefix("aws_"): value for name, value in location.storage_options.items()}
    config: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "read_timeout": READ_TIMEOUT_S,
        "retries": {"total_max_attempts": _ATTEMPTS, "mode": "standard"},
        "max_pool_connections": _CONNECTIONS,
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


def bucket_of(location: Location) -> str:
    """The name of the bucket."""
    return location.host.url.removeprefix("s3://")


def ask_bucket(call: Callable[[], _Answer], location: Location, path: str | None = None) -> _Answer:
    """Calls the bucket, and raises boto3's errors as those of `state.errors`.

    Args:
        call: one request, with the retries that boto3 makes by itself.
        location: the location, for messages.
        path: the path of the object, relative to the location; None for a listing.

    Raises:
        ObjectVanished, ObjectChanged: the object does not exist, or not in the version that was asked for.
        BucketNotFoundError, AccessDeniedError, StorageUnavailableError: see `state.errors`.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return call()
    except (BotoCoreError, ClientError) as error:
        answer = error.response if isinstance(error, ClientError) else {}
        kind = answer["Error"].get("Code", "") if answer else type(error).__name__
        is_denied = kind in DENIED_CODES or answer.get("ResponseMetadata", {}).get("HTTPStatusCode") in (401, 403)
    place = str(location) if path is None else f"{location}/{path}"
    if kind == "NoSuchBucket":
        raise bucket_not_found(location)
    if path is not None and kind in _VANISHED:
        raise ObjectVanished(f"{place} is no longer there")
    if path is not None and kind in _CHANGED:
        raise ObjectChanged(f"{place} has changed since it was listed")
    if is_denied:
        raise AccessDeniedError(f"{place}: access is denied ({kind}); check the credentials and the permissions")
    what = "the listing" if path is None else "the request"
    raise StorageUnavailableError(f"{place}: {what} failed ({kind}); try again later")
