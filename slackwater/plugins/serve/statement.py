"""Statement of a client: a query, or a step of its session.

The first word decides.  A text that begins no known step is a query, which DuckDB's parser accepts or refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from slackwater.plugins.serve.sql_error import NOT_SERVED, READ_ONLY, SYNTAX, SqlError
from slackwater.plugins.serve.sql_text import MOST_BYTES, Token, behind, pieces, remembered


@dataclass(frozen=True)
class Question:
    """A query, which may also be something else until DuckDB's parser has read it; its answer has rows.

    Args:
        explain: `EXPLAIN`, `EXPLAIN ANALYZE`, or empty for its rows.
    """

    text: str
    explain: Literal["", "EXPLAIN", "EXPLAIN ANALYZE"] = ""


@dataclass(frozen=True)
class Transaction:
    """The beginning or the end of a transaction, or a savepoint, which has no meaning for a reader."""

    step: Literal["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "ROLLBACK TO"]


@dataclass(frozen=True)
class Setting:
    """A new value of a setting; None for its first value."""

    name: str
    value: str | None
    is_reset: bool = False


@dataclass(frozen=True)
class Show:
    """The value of a setting; `all` for all of them."""

    name: str


@dataclass(frozen=True)
class Forget:
    """The end of a prepared statement; None for all of them, and of all cursors as well for `DISCARD`."""

    name: str | None
    tag: str


@dataclass(frozen=True)
class Declare:
    """A cursor over a query."""

    name: str
    query: str
    is_kept: bool


@dataclass(frozen=True)
class Fetch:
    """Rows of a cursor; None for all that are left.  `MOVE` skips them."""

    name: str
    count: int | None
    is_move: bool


@dataclass(frozen=True)
class CloseCursor:
    """The end of a cursor; None for all."""

    name: str | None


Statement: TypeAlias = Question | Transaction | Setting | Show | Forget | Declare | Fetch | CloseCursor


@remembered
def parsed(text: str) -> Statement:
    """The statement in a text that has one.

    Raises:
        SqlError: it is a step of a session that is not served, or not understood.
    """
    if len(text.encode()) > MOST_BYTES:
        return Question(text)
    words = pieces(text)
    step = _STEPS.get(words[0].upper) if words else None
    return step(text, words) if step is not None else Question(text)


_EXPLAINED = (("(", "ANALYZE", ")"), ("ANALYZE",), ())


def _explain(text: str, words: tuple[Token, ...]) -> Statement:
    spread = tuple(word.upper for word in words[1:4])
    options = next(each for each in _EXPLAINED if spread[: len(each)] == each)
    return Question(behind(text, words[len(options)]), "EXPLAIN ANALYZE" if options else "EXPLAIN")


def _begin(_: str, words: tuple[Token, ...]) -> Statement:
    if any(word.upper == "WRITE" for word in words):
        raise SqlError(READ_ONLY, "READ WRITE is refused: this server only reads")
    return Transaction("BEGIN")


def _end(_: str, words: tuple[Token, ...]) -> Statement:
    if any(word.upper == "PREPARED" for word in words):
        raise SqlError(NOT_SERVED, "transactions in two phases are not served")
    return Transaction("COMMIT")


def _rollback(_: str, words: tuple[Token, ...]) -> Statement:
    return Transaction("ROLLBACK TO" if any(word.upper == "TO" for word in words) else "ROLLBACK")


def _set(_: str, words: tuple[Token, ...]) -> Statement:
    rest = words[1:]
    if rest and rest[0].upper in ("SESSION", "LOCAL") and len(rest) > 1:
        rest = rest[1:]
    first = [word.upper for word in rest[:2]]
    if first[:1] == ["CHARACTERISTICS"] or first[:1] == ["TRANSACTION"]:
        if any(word.upper == "WRITE" for word in rest):
            raise SqlError(READ_ONLY, "READ WRITE is refused: this server only reads")
        return Setting("transaction_read_only", "on")
    if first == ["TIME", "ZONE"]:
        return Setting("timezone", "".join(word.value for word in rest[2:]))
    at = next((at for at, word in enumerate(rest) if word.upper in ("=", "TO")), None)
    if at is None or not at or at + 1 == len(rest):
        raise SqlError(SYNTAX, "SET is written as SET name = 'value'")
    name = "".join(word.value for word in rest[:at])
    if [word.upper for word in rest[at + 1 :]] == ["DEFAULT"]:
        return Setting(name, None)
    return Setting(name, "".join(word.value for word in rest[at + 1 :]))


def _reset(_: str, words: tuple[Token, ...]) -> Statement:
    if len(words) < 2:
        raise SqlError(SYNTAX, "RESET is written as RESET name, or RESET ALL")
    return Setting("".join(word.value for word in words[1:]), None, is_reset=True)


def _show(text: str, words: tuple[Token, ...]) -> Statement:
    rest = [word.upper for word in words[1:]]
    if not rest or rest[0] in ("TABLES", "DATABASES", "SCHEMAS") or rest == ["ALL", "TABLES"]:
        return Question(text)
    if rest == ["TIME", "ZONE"]:
        return Show("timezone")
    if rest == ["TRANSACTION", "ISOLATION", "LEVEL"]:
        return Show("transaction_isolation")
    return Show("".join(word.value for word in words[1:]))


def _forget(_: str, words: tuple[Token, ...]) -> Statement:
    name = words[-1]
    return Forget(None if len(words) < 2 or name.upper == "ALL" else name.value, "DEALLOCATE")


def _discard(_: str, words: tuple[Token, ...]) -> Statement:
    return Forget(None, "DISCARD ALL")


def _declare(text: str, words: tuple[Token, ...]) -> Statement:
    spread = [word.upper for word in words]
    if "CURSOR" not in spread or "FOR" not in spread or spread.index("FOR") < 3:
        raise SqlError(SYNTAX, "a cursor is declared as DECLARE name CURSOR FOR SELECT ...")
    options, at = spread[2 : spread.index("FOR")], spread.index("FOR")
    if "SCROLL" in options and options[options.index("SCROLL") - 1] != "NO":
        raise SqlError(NOT_SERVED, "cursors that go back are not served: leave SCROLL out")
    if "BINARY" in options:
        raise SqlError(NOT_SERVED, "DECLARE ... BINARY is not served: ask for the binary format of the rows")
    is_kept = "HOLD" in options and "WITH" in options
    return Declare(words[1].value, behind(text, words[at]), is_kept)


def _fetch(_: str, words: tuple[Token, ...]) -> Statement:
    rest = [word for word in words[1:] if word.upper not in ("FROM", "IN")]
    if not rest:
        raise SqlError(SYNTAX, "rows of a cursor are fetched as FETCH 100 FROM name")
    *how, name = rest
    said = [word.upper for word in how if word.upper != "FORWARD"]
    if any(word in ("BACKWARD", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE", "-") for word in said):
        raise SqlError("55000", "a cursor goes forward only: FETCH 100 FROM name")
    if said and said[0].isdecimal() and said[0].isascii():
        return Fetch(name.value, int(said[0]), words[0].upper == "MOVE")
    if said not in ([], ["NEXT"], ["ALL"]):
        raise SqlError(SYNTAX, f"invalid number of rows: {said[0]!r}; use FETCH 100 FROM name")
    return Fetch(name.value, None if said == ["ALL"] else 1, words[0].upper == "MOVE")


def _close(_: str, words: tuple[Token, ...]) -> Statement:
    return CloseCursor(None if words[-1].upper == "ALL" else words[-1].value)


_STEPS: dict[str, Callable[[str, tuple[Token, ...]], Statement]] = {
    "EXPLAIN": _explain,
    "BEGIN": _begin,
    "START": _begin,
    "COMMIT": _end,
    "END": _end,
    "ROLLBACK": _rollback,
    "ABORT": _rollback,
    "SAVEPOINT": lambda text, words: Transaction("SAVEPOINT"),
    "RELEASE": lambda text, words: Transaction("RELEASE"),
    "SET": _set,
    "RESET": _reset,
    "SHOW": _show,
    "DEALLOCATE": _forget,
    "DISCARD": _discard,
    "DECLARE": _declare,
    "FETCH": _fetch,
    "MOVE": _fetch,
    "CLOSE": _close,
}
