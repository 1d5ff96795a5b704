"""Translation of an object store's errors into those of `state.errors`; the only place for it.

Messages of obstore may hold whole requests and answers: signed URLs, headers, signed text.  Only an HTTP status, an S3
error code and the kind of a network failure are passed on, each by a pattern that lets nothing else through.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from obstore.exceptions import (
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)

from actors.file_errors import ObjectChanged, ObjectVanished, UnreadableFile
from state.errors import (
    AccessDeniedError,
    BucketNotFoundError,
    SettingsError,
    SlackwaterError,
    StorageUnavailableError,
)
from state.location import Location
from state.objects.storage_error import NO_PART

Result = TypeVar("Result")

_STATUS = re.compile(r"status(?: code)?: (\d{3})\b")
_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_OPTION = re.compile(r"key: '(\w{1,60})'|key: \"(\w{1,60})\"")
_INVALID_PATH = re.compile(r"(?:path: \"|Path \")((?:[^\"\\]|\\.){1,200})")
_INVALID_NAMES = ("invalid path", "non-unicode characters", "Error parsing Path", "Could not parse path")
_BROKEN_OFF = "response body error"
_NETWORK = (
    ("dns error", "its host name is not known"),
    ("Connection refused", "the connection was refused"),
    ("ConnectionRefused", "the connection was refused"),
    ("TimedOut", "it did not answer in time"),
    ("timed out", "it did not answer in time"),
    ("Timeout", "it did not answer in time"),
    ("certificate", "its certificate is not accepted"),
    ("Connect", "no connection could be made"),
)
INVALID_NAME = "its name has control characters, or a part that is empty, . or ..; rename it"
NO_RANGED_READS = (
    "its store lacks ranged reads (Range): it answers a request for a part of the object with the whole object; use a "
    "store or a gateway that supports them, then read the file with `slackwater retry`"
)
EXPIRED = ("ExpiredToken", "ExpiredTokenException", "InvalidToken", "RequestExpired", "TokenRefreshRequired")
"""Codes of refused credentials that S3 answers with the status 400."""
_METADATA_HOSTS = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")


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
    text = str(error)
    status, code = _found(_STATUS, text), _found(_CODE, text)
    place = str(location) if path is None else f"{location}/{path}"
    said = " ".join(part for part in (status, code) if part)
    if isinstance(error, UnknownConfigurationKeyError):
        option = _found(_OPTION, text) or "one of them"
        return SettingsError(
            f"{location}: storage option {option} is not known for {location.scheme}://; correct its name"
        )
    if any(sign in text for sign in _INVALID_NAMES):
        if path is not None:
            return UnreadableFile(INVALID_NAME)
        name = ascii(_found(_INVALID_PATH, text))
        return UnreadableNameError(
            f"{location}: an object's name has characters that cannot be read ({name}): rename it, or give the source "
            "a URL that leaves it out"
        )
    if path is not None and any(sign in text for sign in NO_PART):
        return UnreadableFile(NO_RANGED_READS)
    if isinstance(error, PreconditionError) or status == "412":
        return ObjectChanged(f"{place} has changed since it was listed")
    if any(host in text for host in _METADATA_HOSTS):
        return AccessDeniedError(
            f"{place}: no credentials were found; give storage_options (access_key_id, secret_access_key), set them in "
            "the environment, or give skip_signature='true' for a public bucket"
        )
    if code == "NoSuchBucket" or "UnableToCanonicalize" in text:
        return bucket_not_found(location)
    if isinstance(error, (FileNotFoundError, NotADirectoryError)) or status == "404":
        return bucket_not_found(location) if path is None else ObjectVanished(f"{place} is no longer there")
    if status == "301" or code in (
        "AuthorizationHeaderMalformed",
        "PermanentRedirect",
        "IllegalLocationConstraintException",
    ):
        return SettingsError(f"{place}: the bucket is in another region; give its region in storage_options")
    if (
        isinstance(error, (PermissionDeniedError, UnauthenticatedError, PermissionError))
        or status in ("401", "403")
        or code in EXPIRED
        or "os error 13" in text
    ):
        why = f" ({said})" if said else ""
        return AccessDeniedError(f"{place}: access is denied{why}; check the credentials and the permissions")
    if status:
        return StorageUnavailableError(f"{place}: the store answered {said}; try again later")
    if _BROKEN_OFF in text:
        return AnswerBrokenOffError(f"{place}: the store's answer broke off; try again later")
    why = next((meaning for sign, meaning in _NETWORK if sign in text), "the request failed")
    return StorageUnavailableError(f"{place}: the store cannot be reached: {why}; check the endpoint and the network")


def bucket_not_found(location: Location) -> BucketNotFoundError:
    """The error for a missing bucket or directory."""
    if location.is_local:
        return BucketNotFoundError(f"{location}: there is no such directory; create it or correct the path")
    return BucketNotFoundError(f"{location}: there is no such bucket; create it or correct the URL")


def _found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return next((group for group in match.groups() if group), "") if match else ""
