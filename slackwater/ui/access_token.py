"""The token that a page asks for which others than this machine's users can reach."""

from __future__ import annotations

import hmac
import ipaddress
import os
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from state.errors import UsageError

VARIABLE = "SLACKWATER_UI_TOKEN"
_SHORTEST = 16
_ALLOWED = frozenset(string.ascii_letters + string.digits + "-._~+/=")  # what RFC 6750 lets a bearer token be made of


@dataclass(frozen=True)
class AccessToken:
    """A secret that whoever asks has to know.

    Args:
        text: the secret; the repr does not show it.
        is_new: whether it was made up here, so that somebody has to be told.
    """

    text: str = field(repr=False)
    is_new: bool = False

    def is_said_by(self, authorization: str) -> bool:
        """Whether a header `Authorization` names it; how long that takes does not tell how much of it was right."""
        scheme, _, said = authorization.partition(" ")
        return hmac.compare_digest(said.strip().encode(), self.text.encode()) and scheme.lower() == "bearer"

    @classmethod
    def chosen(cls, host: str, file: Path | None, environment: Mapping[str, str]) -> AccessToken | None:
        """The token of the file, else that of the environment; a new one, unless only this machine can reach the host.

        Args:
            host: the name or address to listen on.
            file: has the token as its only line.
            environment: may have it as `SLACKWATER_UI_TOKEN`.

        Raises:
            UsageError: the file cannot be read, or what it or the environment has is no token.
        """
        if file is not None:
            return cls(_checked(_read(file), f"file {file}"))
        if environment.get(VARIABLE):
            return cls(_checked(environment[VARIABLE], f"environment variable {VARIABLE}"))
        return None if is_loopback(host) else cls(os.urandom(24).hex(), is_new=True)


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may be anybody's


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"the token file {file} cannot be read: {reason}; write the token into it") from None


def _checked(text: str, place: str) -> str:
    # What is wrong with it is told, and not what it is.
    if len(text) < _SHORTEST or not _ALLOWED.issuperset(text):
        raise UsageError(
            f"the {place} holds no token: it takes {_SHORTEST} or more letters, digits or any of -._~+/=, in one line; "
            "`openssl rand -hex 24` makes one"
        )
    return text
