"""Messages of PostgreSQL's protocol, version 3: bytes to values, and values to bytes.

The protocol: https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from slackwater.plugins.serve.sql_error import PROTOCOL_VIOLATION, SqlError

PROTOCOL_3 = 196608
_CANCEL, _TLS, _GSS = 80877102, 80877103, 80877104
TEXT, BINARY = 0, 1
_REFUSED = b"!"


@dataclass(frozen=True)
class Startup:
    """The first message of a session.

    Args:
        minor: the minor version of the protocol that the client asks for.
        parameters: `user`, `database`, `application_name` and others.
    """

    minor: int
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class CancelRequest:
    """The only message of a connection: it ends the statement of another connection."""

    process_id: int
    secret: bytes = field(repr=False)


@dataclass(frozen=True)
class EncryptionRequest:
    """The question whether the server encrypts: by TLS, or else by GSSAPI."""

    is_tls: bool


@dataclass(frozen=True)
class Query:
    """Statements of the simple protocol."""

    text: str


@dataclass(frozen=True)
class Parse:
    """A prepared statement, with the types of its first parameters; 0 for a type that the server finds."""

    name: str
    text: str
    types: tuple[int, ...]


@dataclass(frozen=True)
class Bind:
    """Values for a prepared statement: a portal."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...] = field(repr=False)
    result_formats: tuple[int, ...]


@dataclass(frozen=True)
class Describe:
    """The question for the columns of a statement or a portal."""

    is_portal: bool
    name: str


@dataclass(frozen=True)
class Execute:
    """Rows of a portal; 0 for all of them."""

    portal: str
    max_rows: int


@dataclass(frozen=True)
class Close:
    """The end of a statement or a portal."""

    is_portal: bool
    name: str


@dataclass(frozen=True)
class Sync:
    """The end of a group of messages of the extended protocol."""


@dataclass(frozen=True)
class Flush:
    """The request for the answers up to this message."""


@dataclass(frozen=True)
class Terminate:
    """The end of the session."""


@dataclass(frozen=True)
class Response:
    """An answer to a question about the password."""

    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Refused:
    """A message of the client that the front has refused; it fails in the place of the message.

    Args:
        is_query: True for a message of the simple protocol.
    """

    is_query: bool
    error: SqlError


Message: TypeAlias = Refused | Query | Parse | Bind | Describe | Execute | Close | Sync | Flush | Terminate | Response


class _Body:
    """The fields of one message, from the first to the last."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def number(self, layout: str) -> int:
        size = struct.calcsize(layout)
        return int(struct.unpack(layout, self.take(size))[0])

    def take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._body):
            raise _broken("it is shorter than its fields")
        self._at += size
        return self._body[self._at - size : self._at]

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise _broken("a text has no end")
        raw, self._at = self._body[self._at : end], end + 1
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise SqlError("22021", "a text is not UTF-8: set client_encoding to UTF8") from None

    def numbers(self, layout: str) -> tuple[int, ...]:
        return tuple(self.number(layout) for _ in range(self.number("!H")))

    def value(self) -> bytes | None:
        size = self.number("!i")
        return None if size < 0 else self.take(size)

    def rest(self) -> bytes:
        return self.take(len(self._body) - self._at)

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._body)


def first_message(body: bytes) -> Startup | CancelRequest | EncryptionRequest:
    """The message that begins a connection; it has no type.

    Raises:
        SqlError: it is not one of PostgreSQL's protocol 3.
    """
    fields = _Body(body)
    code = fields.number("!I")
    if code == _CANCEL:
        return CancelRequest(fields.number("!I"), fields.rest())
    if code in (_TLS, _GSS):
        return EncryptionRequest(code == _TLS)
    if code >> 16 != 3:
        raise _broken(f"version {code >> 16} of the protocol is not served, only version 3")
    parameters = {}
    while not fields.is_over and (name := fields.text()):
        parameters[name] = fields.text()
    return Startup(code & 0xFFFF, parameters)


def inner_message(kind: bytes, body: bytes) -> Message:
    """A message from the front to a worker: one of a client, or a `Refused`."""
    if kind != _REFUSED:
        return message(kind, body)
    fields = _Body(body)
    return Refused(fields.take(1) == b"Q", SqlError(fields.text(), fields.text()))


def message(kind: bytes, body: bytes) -> Message:
    """A message of a client in its session.

    Args:
        kind: its type, one byte.

    Raises:
        SqlError: the type is unknown, or the body does not fit it.
    """
    fields = _Body(body)
    match kind:
        case b"Q":
            return Query(fields.text())
        case b"P":
            return Parse(fields.text(), fields.text(), fields.numbers("!I"))
        case b"B":
            portal, statement, formats = fields.text(), fields.text(), fields.numbers("!H")
            values = tuple(fields.value() for _ in range(fields.number("!H")))
            return Bind(portal, statement, formats, values, fields.numbers("!H"))
        case b"D":
            return Describe(_is_portal(fields), fields.text())
        case b"E":
            return Execute(fields.text(), fields.number("!I"))
        case b"C":
            return Close(_is_portal(fields), fields.text())
        case b"S":
            return Sync()
        case b"H":
            return Flush()
        case b"X":
            return Terminate()
        case b"p":
            return Response(body)
        case b"F":
            raise SqlError("0A000", "calls of functions by message are not served: use SELECT")
        case b"d" | b"c" | b"f":
            raise SqlError("0A000", "COPY is not served: use SELECT")
    raise _broken(f"there is no message of type {kind!r}")


def refused(kind: bytes, sqlstate: str, text: str) -> bytes:
    """The message `Refused`, which only the front sends."""
    return _framed(_REFUSED, kind + _text(sqlstate) + _text(text))


def _is_portal(fields: _Body) -> bool:
    kind = fields.take(1)
    if kind not in (b"P", b"S"):
        raise _broken(f"{kind!r} is neither a portal nor a statement")
    return kind == b"P"


def _broken(reason: str) -> SqlError:
    return SqlError(PROTOCOL_VIOLATION, f"the message is not understood: {reason}")


# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WireColumn:
    """A column of a result.

    Args:
        oid: the number of its type in PostgreSQL.
        size: the bytes of a value; -1 for a type of any size.
        modifier: the details of its type; -1 for none.
        format: `TEXT` or `BINARY`.
    """

    name: str
    oid: int
    size: int
    modifier: int
    format: int


PARSE_COMPLETE = b"1\0\0\0\4"
BIND_COMPLETE = b"2\0\0\0\4"
CLOSE_COMPLETE = b"3\0\0\0\4"
NO_DATA = b"n\0\0\0\4"
EMPTY_QUERY = b"I\0\0\0\4"
PORTAL_SUSPENDED = b"s\0\0\0\4"
AUTHENTICATED = b"R\0\0\0\10\0\0\0\0"


def _framed(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _text(text: str) -> bytes:
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


def password_question(code: int, body: bytes) -> bytes:
    """A step of SASL: 10 names the mechanisms, 11 continues, 12 ends it."""
    return _framed(b"R", struct.pack("!I", code) + body)


def parameter_status(name: str, value: str) -> bytes:
    """The value of a setting that clients know."""
    return _framed(b"S", _text(name) + _text(value))


def backend_key(process_id: int, secret: bytes) -> bytes:
    """The identity by which a statement of this session is cancelled."""
    return _framed(b"K", struct.pack("!I", process_id) + secret)


def minor_version(minor: int, options: Iterable[str]) -> bytes:
    """The version of the protocol that is served, and the options of the client that are not."""
    refused = list(options)
    return _framed(b"v", struct.pack("!II", minor, len(refused)) + b"".join(map(_text, refused)))


def ready(status: bytes) -> bytes:
    """The session waits: `I` outside a transaction, `T` inside one, `E` inside one that failed."""
    return _framed(b"Z", status)


def parameter_description(types: Sequence[int]) -> bytes:
    """The types of the parameters of a statement."""
    return _framed(b"t", struct.pack(f"!H{len(types)}I", len(types), *types))


def row_description(columns: Sequence[WireColumn]) -> bytes:
    """The columns of the rows that follow."""
    parts = [struct.pack("!H", len(columns))]
    for each in columns:
        parts.append(_text(each.name))
        parts.append(struct.pack("!IhIhih", 0, 0, each.oid, each.size, each.modifier, each.format))
    return _framed(b"T", b"".join(parts))


_NULL = b"\xff\xff\xff\xff"
_length = struct.Struct("!I").pack


def data_row(values: Sequence[bytes | None]) -> bytes:
    """One row; None is null."""
    parts = [_NULL if value is None else _length(len(value)) + value for value in values]
    body = b"".join(parts)
    return b"D" + struct.pack("!IH", len(body) + 6, len(parts)) + body


def command_complete(tag: str) -> bytes:
    """The end of a statement: `SELECT 3`, `BEGIN`."""
    return _framed(b"C", _text(tag))


def error_response(error: SqlError, *, is_fatal: bool = False) -> bytes:
    """An error; a fatal one ends the session."""
    return _framed(b"E", _fields("FATAL" if is_fatal else "ERROR", error))


def notice(error: SqlError) -> bytes:
    """A warning."""
    return _framed(b"N", _fields("WARNING", error))


def _fields(severity: str, error: SqlError) -> bytes:
    parts = {"S": severity, "V": severity, "C": error.sqlstate, "M": error.message}
    if error.hint:
        parts["H"] = error.hint
    return b"".join(kind.encode() + _text(text) for kind, text in parts.items()) + b"\0"
