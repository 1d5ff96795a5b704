"""Translation of an object store's errors into those of `state.errors`; the only place for it.

The signs of each fault are in `state.objects.store_faults`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from obstore.exceptions import BaseError

from actors.file_errors import ObjectChanged, ObjectVanished, UnreadableFile
from state.errors import (
    AccessDeniedError,
    BucketNotFoundError,
    SettingsError,
    SlackwaterError,
    StorageUnavailableError,
)
from state.location import Location
from state.objects.store_faults import FailedRequest, StoreFault

Result = TypeVar("Result")

_OF_S3 = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or give "
    'storage_options={"access_key_id": ..., "secret_access_key": ...}; for a public bucket, AWS_SKIP_SIGNATURE=true or '
    '{"skip_signature": "true"}'
)
_CREDENTIALS = {
    "gs": 'set GOOGLE_APPLICATION_CREDENTIALS in the environment, or give storage_options={"service_account": "FILE"}',
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY in the environment, or give "
    'storage_options={"account_name": ..., "account_key": ...}',
}
INVALID_NAME = "its name has control characters, or a part that is empty, . or ..; rename it"
NO_RANGED_READS = (
    "its store lacks ranged reads (Range): it answers a request for a part of the object with the whole object; use a "
    "store or a gateway that supports them, then read the file with `slackwater retry`"
)


class AnswerBrokenOffError(StorageUnavailableError):
    """The store's answer ended before it was complete."""


class UnreadableNameError(SettingsError):
    """A listing has a name that obstore does not take."""


def ask_store(call: Callable[[], Result], location: Location, path: str | None = None) -> Result:
    """Calls the store, and raises its errors as those of `state.errors`, without the original in the context.

    Args:
        call: one request, with the retries that obstore makes by itself.
        location: the location, for messages.
        path: the path of the object that is read, relative to the location; None for a listing.

    Raises:
        ObjectVanished, ObjectChanged: the object does not exist any more, or not in the version that was listed.
        UnreadableFile: the client does not take the path.
        BucketNotFoundError, AccessDeniedError, StorageUnavailableError, SettingsError: see `state.errors`.
    """
    try:
        return call()
    except (BaseError, OSError, ValueError) as error:
        ours = translated(error, location, path)
    raise ours


def translated(error: Exception, location: Location, path: str | None = None) -> SlackwaterError:
    """The error for one of obstore; see `ask_store`."""
    failed = FailedRequest(error)
    place = str(location) if path is None else f"{location}/{path}"
    if failed.has(StoreFault.UNKNOWN_OPTION):
        option = failed.option or "one of them"
        return SettingsError(
            f"{location}: storage option {option} is not known for {location.scheme}://; correct its name"
        )
    if failed.has(StoreFault.INVALID_NAME):
        if path is not None:
            return UnreadableFile(INVALID_NAME)
        return UnreadableNameError(
            f"{location}: an object's name has characters that cannot be read ({failed.invalid_path!a}): rename "
            "it, or give the source a URL that leaves it out"
        )
    if path is not None and failed.has(StoreFault.NO_RANGED_READS):
        return UnreadableFile(NO_RANGED_READS)
    if failed.has(StoreFault.CHANGED):
        return ObjectChanged(f"{place} has changed since it was listed")
    if failed.has(StoreFault.NO_CREDENTIALS):
        return AccessDeniedError(f"{place}: no credentials were found; {_CREDENTIALS.get(location.scheme, _OF_S3)}")
    if failed.has(StoreFault.NO_BUCKET) or failed.has(StoreFault.NO_DIRECTORY):
        return bucket_not_found(location)
    if failed.has(StoreFault.NOT_FOUND):
        return bucket_not_found(location) if path is None else ObjectVanished(f"{place} is no longer there")
    if failed.has(StoreFault.OTHER_REGION):
        return SettingsError(f"{place}: the bucket is in another region; give its region in storage_options")
    if failed.has(StoreFault.DENIED):
        why = f" ({failed.answer})" if failed.answer else ""
        return AccessDeniedError(f"{place}: access is denied{why}; check the credentials and the permissions")
    if failed.status:
        return StorageUnavailableError(f"{place}: the store answered {failed.answer}; try again later")
    if failed.has(StoreFault.BROKEN_OFF):
        return AnswerBrokenOffError(f"{place}: the store's answer broke off; try again later")
    return StorageUnavailableError(
        f"{place}: the store cannot be reached: {failed.no_answer_reason}; check the endpoint and the network"
    )


def bucket_not_found(location: Location) -> BucketNotFoundError:
    """The error for a missing bucket or directory."""
    if location.is_local and location.path.is_file():
        file = location.path
        return BucketNotFoundError(
            f"{location}: it is a file; give its directory {file.parent}, and pattern={file.name!r}"
        )
    if location.is_local:
        return BucketNotFoundError(f"{location}: there is no such directory; create it or correct the path")
    return BucketNotFoundError(f"{location}: there is no such bucket; create it or correct the URL")
