"""Errors of Lance and obstore as errors of our tree: one line, without secrets."""

from __future__ import annotations

import re

from state.errors import (
    AccessDeniedError,
    BucketNotFoundError,
    NotFoundError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
    StoreNotFoundError,
)
from state.location import Location, is_secret

_NO_BUCKET = ("NoSuchBucket", "bucket does not exist")
# Of a disk, its quota, a limit of the process, and S3 servers.
_FULL = (
    "os error 28",
    "os error 122",
    "os error 27",
    "[Errno 28]",
    "[Errno 122]",
    "[Errno 27]",
    "507 Insufficient Storage",
    "InsufficientStorage",
    "XMinioStorageFull",
    "QuotaExceeded",
)
_NOT_FOUND = ("was not found", "Not found", "not found")
_DENIED = (
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "403 Forbidden",
    "401 Unauthorized",
    "ermission denied",
    "CredentialsNotLoaded",
    "credential provider",
)
_QUERY = re.compile(r"\?\S*")  # of a URL: it may hold a signature
_SOURCE = re.compile(r",? ?/\S+\.rs:\d+:\d+")  # a line of code in Lance
_MAX_CHARACTERS = 300


def storage_error(error: Exception, location: Location) -> StorageError | NotFoundError:
    """The error of our tree for an error of Lance or obstore.

    Args:
        error: the error of Lance or obstore.
        location: the location of the request.

    Returns:
        BucketNotFoundError, StorageFullError, AccessDeniedError, StoreNotFoundError, or else StorageUnavailableError.
    """
    text = str(error)
    if any(mark in text for mark in _NO_BUCKET):
        return BucketNotFoundError(f"the bucket of {location} does not exist: create it or correct the URL")
    if any(mark in text for mark in _FULL):
        what = "the disk, or its quota, is full" if location.is_local else "the store, or its quota, is full"
        return StorageFullError(f"{location} has no room left ({what}): make room; committed epochs are kept")
    if any(mark in text for mark in _DENIED):
        return AccessDeniedError(f"access to {location} is refused: correct the credentials or the permissions")
    if any(mark in text for mark in _NOT_FOUND):
        return StoreNotFoundError(f"{location} does not exist, or not in that version: correct the URL")
    for name, value in location.storage_options.items():
        if value and is_secret(name):
            text = text.replace(value, "***")
    text = _SOURCE.sub("", _QUERY.sub("?...", text))
    reason = text.partition("\n")[0][:_MAX_CHARACTERS]
    return StorageUnavailableError(f"{location} cannot be read or written now ({reason}): try again later")
