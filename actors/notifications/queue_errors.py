"""Translation of SQS errors into those of `state.errors`; the only place for it.

Messages of SQS may hold signed text and names of principals.  Only the error's code is passed on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from state.errors import (
    AccessDeniedError,
    QueueNotFoundError,
    SettingsError,
    SlackwaterError,
    StorageUnavailableError,
)

Result = TypeVar("Result")

_CODE = re.compile(r"(?:[A-Za-z0-9]+[.#])*([A-Za-z0-9]{1,60})")
_NO_QUEUE = ("QueueDoesNotExist", "NonExistentQueue", "InvalidAddress")
# A server without codes of its own gives the HTTP status.
_DENIED = (
    "401",
    "403",
    "AccessDenied",
    "AccessDeniedException",
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "InvalidSignatureException",
    "KmsAccessDenied",
    "MissingAuthenticationToken",
    "NotAuthorized",
    "OptInRequired",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
)
_NOT_OFFERED = (
    "InvalidAction",
    "NotImplemented",
    "UnknownOperation",
    "UnknownOperationException",
    "UnsupportedOperation",
)
_THROTTLED = (
    "KmsThrottled",
    "RequestLimitExceeded",
    "RequestThrottled",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
)
_NO_CREDENTIALS = (
    "CredentialRetrievalError",
    "NoAuthTokenError",
    "NoCredentialsError",
    "PartialCredentialsError",
    "SSOTokenLoadError",
    "TokenRetrievalError",
    "UnauthorizedSSOTokenError",
)
_NETWORK = {
    "ConnectTimeoutError": "no connection could be made in time",
    "ConnectionClosedError": "the connection was closed",
    "EndpointConnectionError": "no connection could be made",
    "ProxyConnectionError": "the proxy cannot be reached",
    "ReadTimeoutError": "it did not answer in time",
    "SSLError": "its certificate is not accepted",
}


class NotOfferedError(SettingsError):
    """The server does not have this call."""


def ask_queue(call: Callable[[], Result], queue_url: str, permission: str) -> Result:
    """Calls SQS, and raises its errors as those of `state.errors`, without the original in the context.

    Args:
        call: one request, with the retries that boto3 makes by itself.
        queue_url: the URL of the queue, for messages.
        permission: the IAM action that the call needs.

    Raises:
        QueueNotFoundError, AccessDeniedError, StorageUnavailableError, SettingsError: see `state.errors`.
        NotOfferedError: the server, which is not AWS's own, does not have this call.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return call()
    except ClientError as error:
        ours = of_code(code_of(error.response.get("Error", {}).get("Code")), queue_url, permission)
    except (BotoCoreError, ValueError) as error:
        ours = _of_client(type(error).__name__, queue_url)
    raise ours


def code_of(given: object) -> str:
    """The code of an error, without the name space that SQS puts before it; empty for a text that is not a code."""
    match = _CODE.fullmatch(str(given or ""))
    return match[1] if match else ""


def of_code(code: str, queue_url: str, permission: str) -> SlackwaterError:
    """The error for a code that SQS answered; see `ask_queue`."""
    said = code or "an error without a code"
    if code in _NO_QUEUE:
        return QueueNotFoundError(
            f"{queue_url}: there is no such queue ({said}); create it, or correct the URL or the region in "
            "Notifications(...)"
        )
    if code in _DENIED:
        return AccessDeniedError(
            f"{queue_url}: access is denied ({said}); check the credentials and the region, and that they may "
            f"{permission}"
        )
    if code in _NOT_OFFERED:
        return NotOfferedError(f"{queue_url}: the server does not offer {permission} ({said})")
    if code in _THROTTLED:
        return StorageUnavailableError(f"{queue_url}: SQS wants fewer requests ({said}); try again later")
    if code == "OverLimit":
        return StorageUnavailableError(
            f"{queue_url}: too many messages are in flight ({said}); some must be deleted or become visible first"
        )
    return StorageUnavailableError(f"{queue_url}: SQS answered {said}; try again later")


def _of_client(kind: str, queue_url: str) -> SlackwaterError:
    """The error for a request without an answer; `kind` is the class name of boto3's error."""
    if kind == "NoRegionError":
        return SettingsError(
            f"{queue_url}: no region is given; give Notifications(region=...), or set AWS_DEFAULT_REGION in the "
            "environment"
        )
    if kind in _NO_CREDENTIALS:
        return AccessDeniedError(
            f"{queue_url}: no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the "
            "environment, or give the source storage_options for the same provider"
        )
    if kind in _NETWORK:
        return StorageUnavailableError(
            f"{queue_url}: SQS cannot be reached: {_NETWORK[kind]}; check Notifications(endpoint=...) and the network"
        )
    if kind in ("InvalidRegionError", "ProfileNotFound", "UnknownRegionError", "ValueError"):
        return SettingsError(
            f"{queue_url}: boto3 does not take a setting ({kind}); correct the region, the endpoint or AWS_PROFILE"
        )
    return StorageUnavailableError(f"{queue_url}: the request failed ({kind}); try again later")
