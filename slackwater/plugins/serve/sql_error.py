"""Error of a statement, with its number in PostgreSQL."""

from __future__ import annotations

from actors.telemetry.logging import redact
from slackwater.confinement.duckdb_error import duckdb_reason
from slackwater.confinement.query_parser import RefusedQueryError
from state.errors import (
    AccessDeniedError,
    EpochNotFoundError,
    NotFoundError,
    SlackwaterError,
    StorageError,
    UsageError,
)

# https://www.postgresql.org/docs/current/errcodes-appendix.html
PROTOCOL_VIOLATION = "08P01"
READ_ONLY = "25006"
SYNTAX = "42601"
NOT_SERVED = "0A000"
CANCELLED = "57014"
OUT_OF_MEMORY = "53200"
TOO_MUCH = "54000"
_OF_DUCKDB = {
    "ParserException": SYNTAX,
    "CatalogException": "42P01",
    "BinderException": "42703",
    "ConversionException": "22P02",
    "OutOfRangeException": "22003",
    "PermissionException": "42501",
    "NotImplementedException": NOT_SERVED,
    "InvalidInputException": "22023",
}
_OF_SLACKWATER: tuple[tuple[type[SlackwaterError], str], ...] = (
    (EpochNotFoundError, "55000"),
    (NotFoundError, "42704"),
    (UsageError, "22023"),
    (AccessDeniedError, "42501"),
    (StorageError, "58030"),
)


class SqlError(SlackwaterError):
    """A statement, or a message, that is refused or has failed.

    Args:
        sqlstate: its number in PostgreSQL.
        message: one line.
        hint: the next step, if the message has none.
    """

    def __init__(self, sqlstate: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.sqlstate, self.message, self.hint = sqlstate, message, hint


def error_of_store(error: SlackwaterError) -> SqlError:
    """An error of the store or of the input, for a client."""
    if isinstance(error, SqlError):
        return error
    number = next((number for kind, number in _OF_SLACKWATER if isinstance(error, kind)), "XX000")
    return SqlError(number, " ".join(redact(str(error)).split()))


def error_of_duckdb(error: Exception) -> SqlError:
    """An error of DuckDB in one line."""
    return SqlError(_OF_DUCKDB.get(type(error).__name__, "XX000"), duckdb_reason(redact(str(error))))


_OF_REFUSALS = {"syntax": SYNTAX, "writes": READ_ONLY, "function": NOT_SERVED, "parameters": TOO_MUCH}


def refusal(error: RefusedQueryError) -> SqlError:
    """The refusal of a text by DuckDB's parser, for a client."""
    return SqlError(_OF_REFUSALS[error.reason], redact(str(error)))
