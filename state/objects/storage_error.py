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
from state.objects.store_faults import FailedRequest, StoreFault
from state.objects.stored_object import UnfitObjectError

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
    failed = FailedRequest(error)
    if failed.mentions(StoreFault.INTERRUPTED):
        raise KeyboardInterrupt
    if isinstance(error, UnfitObjectError):
        return DamagedStoreError(f"{failed.text}: delete it, or restore the file of this name from a copy")
    if failed.mentions(StoreFault.NO_BUCKET):
        return BucketNotFoundError(f"the bucket of {location} does not exist: create it or correct the URL")
    if failed.mentions(StoreFault.FULL):
        return StorageFullError(f"{location} has no room left ({_what_is_full(location)}; committed epochs are kept")
    if failed.mentions(StoreFault.READ_ONLY):
        return AccessDeniedError(
            f"{location} is on a file system that is mounted read-only: check the disk and the system log for errors, "
            "then mount it writable and start again; committed epochs are kept"
        )
    if failed.mentions(StoreFault.DENIED):
        return AccessDeniedError(f"access to {location} is refused: correct the credentials or the permissions")
    if failed.mentions(StoreFault.NO_CREDENTIALS):
        return AccessDeniedError(
            f"no credentials for {location} were found: give storage_options (access_key_id, secret_access_key), or "
            "set them in the environment"
        )
    if failed.mentions(StoreFault.NOT_FOUND):
        return StoreNotFoundError(f"{location} does not exist, or not in that version: correct the URL")
    reason = _reason(failed.text, location)
    if failed.mentions(StoreFault.DAMAGED):
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
