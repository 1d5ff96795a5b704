"""Password of the endpoint, and the SCRAM-SHA-256 exchange that proves it: clients never send the password itself.

PostgreSQL's messages: https://www.postgresql.org/docs/current/sasl-authentication.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scramp import ScramException, ScramMechanism

from slackwater.plugins.serve.sql_error import PROTOCOL_VIOLATION, SqlError
from state.errors import UsageError

VARIABLE = "SLACKWATER_PASSWORD"
MECHANISM = b"SCRAM-SHA-256"
WRONG_PASSWORD = "28P01"
_SHORTEST = 8
_SCRAM = ScramMechanism(MECHANISM.decode())


@dataclass(frozen=True)
class Password:
    """The keys that are derived from a password; the server does not keep its text.

    Args:
        keys: salt, stored key, server key and number of iterations.
    """

    keys: tuple[bytes, bytes, bytes, int] = field(repr=False)

    @classmethod
    def of(cls, text: str) -> Password:
        """Derives the keys, with a random salt.

        Raises:
            UsageError: SASLprep (RFC 4013) does not allow a character of the text.
        """
        try:
            return cls(_SCRAM.make_auth_info(text))
        except ScramException:
            raise UsageError(
                f"the environment variable {VARIABLE} contains a character that SASLprep (RFC 4013) prohibits, such as "
                "an emoji; use letters, digits and punctuation"
            ) from None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Password | None:
        """The password in `SLACKWATER_PASSWORD`; None without one.

        Raises:
            UsageError: it is too short, or SASLprep does not allow a character of it.
        """
        text = environment.get(VARIABLE, "")
        if not text:
            return None
        if len(text) < _SHORTEST:
            raise UsageError(f"the environment variable {VARIABLE} is too short: give {_SHORTEST} characters or more")
        return cls.of(text)


class ScramExchange:
    """One client's log-in: `challenge` for its first message, then `verdict` for its last."""

    def __init__(self, password: Password) -> None:
        self._server = _SCRAM.make_server(lambda _user: password.keys)

    def challenge(self, body: bytes) -> bytes:
        """The answer to the client's first message.

        Raises:
            SqlError: the message is not a first message of SCRAM-SHA-256 without channel binding.
        """
        mechanism, _, rest = body.partition(b"\0")
        # The first four bytes of the rest are its length.
        header, is_whole, bare = _halves(rest[4:])
        if mechanism != MECHANISM or not is_whole or not bare.startswith("n="):
            raise _not_scram()
        try:
            # libpq sends an empty user name, which scramp refuses.  PostgreSQL ignores this name: the startup message
            # has the user.  The proof covers the text that the client sent.
            self._server.set_client_first(f"{header}n=*{bare[bare.find(',') :]}")
            self._server.client_first_bare = bare
            return str(self._server.get_server_first()).encode()
        except ScramException:
            raise _not_scram() from None

    def verdict(self, body: bytes, user: str) -> bytes:
        """The server's own proof, if the client's last message proves the password.

        Raises:
            SqlError: the message does not prove it.
        """
        try:
            self._server.set_client_final(body.decode())
            return str(self._server.get_server_final()).encode()
        except (ScramException, UnicodeDecodeError):
            raise SqlError(WRONG_PASSWORD, f'password authentication failed for user "{user}"') from None


def _halves(message: bytes) -> tuple[str, bool, str]:
    """The header up to the second comma, whether it is complete, and the rest."""
    try:
        flag, name, bare = message.decode().split(",", 2)
    except ValueError:  # not UTF-8, or fewer than two commas
        return "", False, ""
    return f"{flag},{name},", True, bare


def _not_scram() -> SqlError:
    return SqlError(PROTOCOL_VIOLATION, "log in by SCRAM-SHA-256 without channel binding")
