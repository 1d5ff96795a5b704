"""Errors of a worker on their way to the front: the name of a class of `state.errors`, and a text."""

from __future__ import annotations

import json
from typing import Any

from state import errors

_MOST_CHARACTERS = 10_000
_KINDS = {
    each.__name__: each
    for each in (
        errors.AccessDeniedError,
        errors.BucketNotFoundError,
        errors.DamagedStoreError,
        errors.EpochExpiredError,
        errors.EpochNotFoundError,
        errors.NotFoundError,
        errors.SchemaError,
        errors.SlackwaterError,
        errors.StorageError,
        errors.StorageUnavailableError,
        errors.StoreNotFoundError,
        errors.UsageError,
        errors.ViewNotFoundError,
    )
}


class WorkerEndedError(errors.SlackwaterError):
    """The worker process ended, or was ended, before it answered."""


def encoded_error(error: errors.SlackwaterError) -> bytes:
    """An error as JSON; a class that the front does not accept becomes its next known parent."""
    kind = next(each.__name__ for each in type(error).__mro__ if each.__name__ in _KINDS)
    return json.dumps({"kind": kind, "text": str(error)[:_MOST_CHARACTERS]}).encode()


def decoded_error(body: bytes) -> errors.SlackwaterError:
    """The error in a frame; a body that is not one becomes a `WorkerEndedError`."""
    try:
        sent: Any = json.loads(body)
        kind, text = _KINDS[sent["kind"]], str(sent["text"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return WorkerEndedError("the worker process sent an error that cannot be read")
    return kind(text[:_MOST_CHARACTERS])
