"""Errors of Lance and obstore as errors of our tree: one line, without secrets."""

from __future__ import annotations

import os
import re

from state.errors import (
    AccessDeniedError,
    BucketNotFoundError,
    DamagedStoreError,
    NotFoundError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
    StoreNotFoundError,
)
from state.location import Location, is_secret
from state.objects.stored_object import NotARegularFileError

_INTERRUPTED = "External error: KeyboardInterrupt:"  # Lance's words for an interrupt during one of its calls
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
)
_READ_ONLY = ("os error 30", "[Errno 30]", "Read-only file system")
# Lance asks the machine's cloud for credentials, and its text then tells how that failed.
_NO_CREDENTIALS = ("Failed to get AWS credentials", "CredentialsNotLoaded", "credential provider")
# Of a file of Lance that is cut off, or that holds other bytes.
_DAMAGED = (
    "failed to fill whole buffer",
    "file size is too small",
    "invalid magic",
    "failed to decode Protobuf message",
    "for object of size 0 bytes",
    "Requested range was invalid",
)
NO_PART = ("non-partial response", "NotPartial")
"""obstore's words for an answer with the whole object to a request for a part of it."""
_SHORT = re.compile(r"range \S+ returned \d+ bytes, expected \d+ bytes")
_QUERY = re.compile(r"\?\S*")  # of a URL: it may hold a signature
_CAUSE = re.compile("\x1b\\[31m↳\x1b\\[0m")  # as delta-rs prints them
_SOURCE = re.compile(r",? ?/\S+\.rs:\d+:\d+")  # a line of code in Lance
_MAX_CHARACTERS = 300


def storage_error(error: Exception, location: Location) -> StorageError | NotFoundError:
    """The error of our tree for an error of Lance or obstore.

    Args:
        error: the error of Lance or obstore.
        location: the location of the request.

    Returns:
        BucketNotFoundError, StorageFullError, AccessDeniedError, DamagedStoreError, StoreNotFoundError, or else
        StorageUnavailableError.

    Raises:
        KeyboardInterrupt: Lance has wrapped one in its error.
    """
    text = str(error)
    if _INTERRUPTED in text:
        raise KeyboardInterrupt
    if isinstance(error, NotARegularFileError):
        return DamagedStoreError(f"{text}: delete it, or restore the file of this name from a copy")
    if any(mark in text for mark in _NO_BUCKET):
        return BucketNotFoundError(f"the bucket of {location} does not exist: create it or correct the URL")
    if any(mark in text for mark in _FULL):
        return StorageFullError(f"{location} has no room left ({_what_is_full(location)}; committed epochs are kept")
    if any(mark in text for mark in _READ_ONLY):
        return AccessDeniedError(
            f"{location} is on a file system that is mounted read-only: check the disk and the system log for errors, "
            "then mount it writable and start again; committed epochs are kept"
        )
    if any(mark in text for mark in _DENIED):
        return AccessDeniedError(f"access to {location} is refused: correct the credentials or the permissions")
    if any(mark in text for mark in _NO_CREDENTIALS):
        return AccessDeniedError(
            f"no credentials for {location} were found: give storage_options (access_key_id, secret_access_key), or "
            "set them in the environment"
        )
    if any(mark in text for mark in _NOT_FOUND):
        return StoreNotFoundError(f"{location} does not exist, or not in that version: correct the URL")
    reason = _reason(text, location)
    if any(mark in text for mark in _DAMAGED) or _SHORT.search(text):
        return DamagedStoreError(
            f"{location} is damaged ({reason}): "
            "restore it from a copy, or let the pipeline read its files into a new root"
        )
    return StorageUnavailableError(f"{location} cannot be read or written now ({reason}): try again later")


def _what_is_full(location: Location) -> str:
    """The exhausted resource, and the next step."""
    if not location.is_local:
        return "the store, or its quota, is full): make room, or raise the quota"
    try:
        found = os.statvfs(location.path if location.path.exists() else location.path.parent)
    except OSError:
        found = None
    if found is not None and found.f_files and not found.f_favail:
        return "the file system has no inodes left): delete files, or move the root to a file system with more inodes"
    return "the disk, or its quota, is full): make room, or raise the quota"


def _reason(text: str, location: Location) -> str:
    """The first line of an error, and the last of its causes; without secrets and lines of code."""
    for name, value in location.storage_options.items():
        if value and is_secret(name):
            text = text.replace(value, "***")
    text = _SOURCE.sub("", _QUERY.sub("?...", text))
    first, *causes = _CAUSE.split(text)
    lines = [first, *causes[-1:]]
    return ": ".join(each.strip().partition("\n")[0] for each in lines)[:_MAX_CHARACTERS]
