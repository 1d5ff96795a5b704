"""Password of the clients, and its proof by SCRAM-SHA-256: the password itself is not sent.

The exchange: RFC 5802 and RFC 7677; in PostgreSQL: https://www.postgresql.org/docs/current/sasl-authentication.html
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from slackwater.serving.sql_error import PROTOCOL_VIOLATION, SqlError
from state.errors import UsageError

VARIABLE = "SLACKWATER_PASSWORD"
MECHANISM = b"SCRAM-SHA-256"
_SHORTEST = 8
_ITERATIONS = 4096
WRONG_PASSWORD = "28P01"


@dataclass(frozen=True)
class Password:
    """What the server keeps of the password.

    Args:
        salt: random bytes.
        stored_key: proves that a client has the password.
        server_key: proves the same of the server.
    """

    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of(cls, text: str) -> Password:
        """The keys of a password."""
        salt = os.urandom(16)
        normal = unicodedata.normalize("NFKC", text).encode()
        salted = hashlib.pbkdf2_hmac("sha256", normal, salt, _ITERATIONS)
        return cls(salt, hashlib.sha256(_hmac(salted, b"Client Key")).digest(), _hmac(salted, b"Server Key"))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Password | None:
        """The password in `SLACKWATER_PASSWORD`; None without one.

        Raises:
            UsageError: it is too short.
        """
        text = environment.get(VARIABLE, "")
        if not text:
            return None
        if len(text) < _SHORTEST:
            raise UsageError(f"the environment variable {VARIABLE} is too short: give {_SHORTEST} characters or more")
        return cls.of(text)


class ScramExchange:
    """One client's proof: its first message, then its last.

    Args:
        password: the password.
        nonce: random text, new for each exchange.
    """

    def __init__(self, password: Password, nonce: str) -> None:
        self._password, self._nonce = password, nonce
        self._first = self._said = self._binding = b""

    def challenge(self, body: bytes) -> bytes:
        """The answer to the client's first message.

        Raises:
            SqlError: the message is not one of SCRAM-SHA-256.
        """
        mechanism, _, rest = body.partition(b"\0")
        # Of the rest, the first four bytes are its length.
        flag, name, bare = [*rest[4:].split(b",", 2), b"", b""][:3]
        if mechanism != MECHANISM or flag not in (b"n", b"y") or not bare.startswith(b"n="):
            raise SqlError(PROTOCOL_VIOLATION, "the password is proved by SCRAM-SHA-256, without channel binding")
        self._first, self._binding = bare, flag + b"," + name + b","
        client = _attribute(bare, b"r")
        if not client:
            raise SqlError(PROTOCOL_VIOLATION, "the first message of SCRAM has no nonce")
        salt = base64.b64encode(self._password.salt)
        self._said = b"r=%s%s,s=%s,i=%d" % (client, self._nonce.encode(), salt, _ITERATIONS)
        return self._said

    def verdict(self, body: bytes, user: str) -> bytes:
        """The proof of the server, if the client's last message proves the password.

        Raises:
            SqlError: it does not.
        """
        without_proof, _, proof = body.rpartition(b",p=")
        signed = b",".join((self._first, self._said, without_proof))
        signature = _hmac(self._password.stored_key, signed)
        try:
            sent = base64.b64decode(proof, validate=True)
            binding = base64.b64decode(_attribute(without_proof, b"c"), validate=True)
        except binascii.Error:
            sent = binding = b""
        key = bytes(one ^ other for one, other in zip(sent, signature, strict=False))
        is_proved = hmac.compare_digest(hashlib.sha256(key).digest(), self._password.stored_key)
        is_same = _attribute(without_proof, b"r") == _attribute(self._said, b"r") and binding == self._binding
        if not (is_proved and is_same):
            raise SqlError(WRONG_PASSWORD, f'password authentication failed for user "{user}"')
        return b"v=" + base64.b64encode(_hmac(self._password.server_key, signed))


def _attribute(text: bytes, name: bytes) -> bytes:
    parts = (part.partition(b"=") for part in text.split(b","))
    return next((value for key, _, value in parts if key == name), b"")


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")
