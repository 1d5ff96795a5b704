"""The faults of an object store, and the signs by which errors of obstore and Lance show them; the only such table.

obstore and Lance raise few classes of errors and put the rest into the text.  The text may hold a whole request and its
answer: signed URLs, headers, signed text.  Only an HTTP status, an S3 error code and names of a safe form are read from
it, each by a pattern that lets nothing else through.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from obstore.exceptions import (
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)

_STATUS = re.compile(r"status(?: code)?: (\d{3})\b")
_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_OPTION = re.compile(r"key: '(\w{1,60})'|key: \"(\w{1,60})\"")
_INVALID_PATH = re.compile(r"(?:path: \"|Path \")((?:[^\"\\]|\\.){1,200})")

DENIED_CODES = (
    "AccessDenied",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
)
"""Codes of S3 for refused credentials; those for expired credentials come with the status 400."""


class StoreFault(Enum):
    """Reason for the failure of a request."""

    INTERRUPTED = auto()
    UNKNOWN_OPTION = auto()
    INVALID_NAME = auto()
    NO_RANGED_READS = auto()
    CHANGED = auto()
    NO_CREDENTIALS = auto()
    DENIED = auto()
    NO_BUCKET = auto()
    NO_DIRECTORY = auto()
    NOT_FOUND = auto()
    OTHER_REGION = auto()
    FULL = auto()
    READ_ONLY = auto()
    DAMAGED = auto()
    BROKEN_OFF = auto()


@dataclass(frozen=True)
class _Signs:
    """The signs of one fault; one of them is enough.

    Args:
        classes: classes of obstore's errors and Python's.
        statuses: HTTP statuses.
        codes: error codes of S3.
        words: words of the client that no name of an object can imitate by accident.
        loose_words: words of Lance, delta-rs and S3 servers in a text that contains the client's error.  Only an error
            about a root is searched for them: the names of a source's objects could contain them.
    """

    classes: tuple[type[Exception], ...] = ()
    statuses: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    loose_words: tuple[str, ...] = ()


_TABLE: Mapping[StoreFault, _Signs] = {
    # A KeyboardInterrupt during a call of Lance, which wraps it in an error.
    StoreFault.INTERRUPTED: _Signs(loose_words=("External error: KeyboardInterrupt:",)),
    StoreFault.UNKNOWN_OPTION: _Signs(classes=(UnknownConfigurationKeyError,)),
    StoreFault.INVALID_NAME: _Signs(
        words=("invalid path", "non-unicode characters", "Error parsing Path", "Could not parse path")
    ),
    # The store answers a request for a part of an object with the whole object.
    StoreFault.NO_RANGED_READS: _Signs(words=("non-partial response", "NotPartial")),
    StoreFault.CHANGED: _Signs(classes=(PreconditionError,), statuses=("412",)),
    # Without given credentials, the client requests the machine's own from its cloud.
    StoreFault.NO_CREDENTIALS: _Signs(
        words=("169.254.169.254", "169.254.170.2", "metadata.google.internal"),
        loose_words=("Failed to get AWS credentials", "CredentialsNotLoaded", "credential provider"),
    ),
    StoreFault.DENIED: _Signs(
        classes=(PermissionDeniedError, UnauthenticatedError, PermissionError),
        statuses=("401", "403"),
        codes=DENIED_CODES,
        words=("os error 13",),
        loose_words=(
            "AccessDenied",
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "403 Forbidden",
            "401 Unauthorized",
            "ermission denied",
        ),
    ),
    StoreFault.NO_BUCKET: _Signs(codes=("NoSuchBucket",), loose_words=("NoSuchBucket", "bucket does not exist")),
    StoreFault.NO_DIRECTORY: _Signs(words=("UnableToCanonicalize",)),
    StoreFault.NOT_FOUND: _Signs(
        classes=(FileNotFoundError, NotADirectoryError),
        statuses=("404",),
        loose_words=("was not found", "Not found", "not found"),
    ),
    StoreFault.OTHER_REGION: _Signs(
        statuses=("301",),
        codes=("AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"),
    ),
    # Of a disk, its quota, a limit of the process, and S3 servers.
    StoreFault.FULL: _Signs(
        loose_words=(
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
    ),
    StoreFault.READ_ONLY: _Signs(loose_words=("os error 30", "[Errno 30]", "Read-only file system")),
    # Of a file of Lance that is cut off, or that holds other bytes.
    StoreFault.DAMAGED: _Signs(
        loose_words=(
            "failed to fill whole buffer",
            "file size is too small",
            "invalid magic",
            "failed to decode Protobuf message",
            "for object of size 0 bytes",
            "Requested range was invalid",
        )
    ),
    StoreFault.BROKEN_OFF: _Signs(words=("response body error",)),
}
_NAMES = re.compile(
    r"(?<=://)([^/\s\"?]*)[^\s\"]*"  # a URL, except its host
    r"|(?<=path: )\"(?:[^\"\\]|\\.)*\"|<(?:Key|Resource|BucketName)>[^<]*"
)
"""Names of objects in the text of an error; a name may hold any word."""
_SHORT_FILE = re.compile(r"range \S+ returned \d+ bytes, expected \d+ bytes")
_NO_ANSWER = (
    ("dns error", "its host name is not known"),
    ("Connection refused", "the connection was refused"),
    ("ConnectionRefused", "the connection was refused"),
    ("TimedOut", "it did not answer in time"),
    ("timed out", "it did not answer in time"),
    ("Timeout", "it did not answer in time"),
    ("certificate", "its certificate is not accepted"),
    ("Connect", "no connection could be made"),
)


class FailedRequest:
    """A failed request, as its error shows it."""

    def __init__(self, error: Exception) -> None:
        self.text = str(error)
        self.status, self.code = self._part(_STATUS), self._part(_CODE)
        """The HTTP status and the error code of S3, or empty texts."""
        self._error = error
        self._words = _NAMES.sub(lambda match: match[1] or "", self.text)

    def has(self, fault: StoreFault) -> bool:
        """True if an error of obstore shows this fault, for objects whose names are not ours."""
        signs = _TABLE[fault]
        return (
            isinstance(self._error, signs.classes)
            or self.status in signs.statuses
            or self.code in signs.codes
            or any(word in self._words for word in signs.words)
        )

    def mentions(self, fault: StoreFault) -> bool:
        """True if the text of any client shows this fault, for objects of a root.

        Classes and statuses do not count: Lance raises one class for all, and a status may be of one request of many.
        """
        signs = _TABLE[fault]
        return (
            self.code in signs.codes
            or self._contains(signs.words)
            or self._contains(signs.loose_words)
            or (fault is StoreFault.DAMAGED and _SHORT_FILE.search(self.text) is not None)
        )

    @property
    def answer(self) -> str:
        """The status and the code, as far as there are any."""
        return " ".join(part for part in (self.status, self.code) if part)

    @property
    def option(self) -> str:
        """The name of the unknown option, or an empty text."""
        return self._part(_OPTION)

    @property
    def invalid_path(self) -> str:
        """The path that the client does not accept, or an empty text."""
        return self._part(_INVALID_PATH)

    @property
    def no_answer_reason(self) -> str:
        """The reason for a request without an answer."""
        return next((reason for words, reason in _NO_ANSWER if words in self.text), "the request failed")

    def _contains(self, words: tuple[str, ...]) -> bool:
        return any(word in self.text for word in words)

    def _part(self, pattern: re.Pattern[str]) -> str:
        match = pattern.search(self.text)
        return next((group for group in match.groups() if group), "") if match else ""
