"""What to do about an error of a store."""

from __future__ import annotations

from state.errors import (
    AccessDeniedError,
    BucketNotFoundError,
    QueueNotFoundError,
    SettingsError,
    SlackwaterError,
    StorageFullError,
)

_SKEWED = "RequestTimeTooSkewed"
_REMEDIES: tuple[tuple[type[SlackwaterError], str], ...] = (
    (BucketNotFoundError, "create it, or correct the URL"),
    (QueueNotFoundError, "create the queue, or correct its URL or region"),
    (
        AccessDeniedError,
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or take a role that may list, get, put and delete",
    ),
    (SettingsError, "correct the storage option that it names"),
    (StorageFullError, "make room, or raise the quota"),
)


def remedy_of(error: SlackwaterError) -> str:
    """What helps against it."""
    if _SKEWED in str(error):
        return "set this machine's clock; the store refuses requests of another time"
    found = (remedy for kind, remedy in _REMEDIES if isinstance(error, kind))
    return next(found, "check the endpoint, the network, and whether the store is up")
