"""Session of one client: messages in, messages out.  It knows no socket."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import structlog

from actors.telemetry.logging import redact
from slackwater.confinement.query_parser import QueryParser
from slackwater.plugins.serve import messages as wire
from slackwater.plugins.serve.asking import Asking
from slackwater.plugins.serve.portal import AnswerLimits, Portal, TableRows, wire_columns
from slackwater.plugins.serve.served_root import ServedRoot
from slackwater.plugins.serve.session_settings import EPOCH, SessionSettings
from slackwater.plugins.serve.sql_error import PROTOCOL_VIOLATION, TOO_MUCH, SqlError, error_of_store
from slackwater.plugins.serve.sql_text import statements
from slackwater.plugins.serve.statement import (
    CloseCursor,
    Declare,
    Fetch,
    Forget,
    Question,
    Setting,
    Show,
    Statement,
    Transaction,
    parsed,
)
from slackwater.plugins.serve.value_types import TEXT, literal
from state.errors import SlackwaterError

_log = structlog.get_logger(actor="serve")
_IN_FAILED = SqlError("25P02", "the transaction has failed, and takes no statement before its end: send ROLLBACK")
_MOST_PREPARED, _MOST_PORTALS, _MOST_CURSORS = 1_000, 1_000, 100
_MOST_KEPT_BYTES = 64 << 20


@dataclass(frozen=True)
class _Prepared:
    """A prepared statement; None for an empty text."""

    statement: Statement | None
    types: tuple[int, ...]
    nbytes: int = 0


@dataclass
class _Bound:
    """A portal of the extended protocol; its question is asked when its columns or rows are wanted."""

    statement: Statement | None
    literals: tuple[str, ...]
    formats: tuple[int, ...]
    portal: Portal | None = None


class Session:
    """One client after its log-in.

    Args:
        limits: of each answer.
    """

    def __init__(
        self, root: ServedRoot, parser: QueryParser, settings: SessionSettings, limits: AnswerLimits = AnswerLimits()
    ) -> None:
        self._settings = settings
        self._asking = Asking(root, parser)
        self._limits = limits
        self._prepared: dict[str, _Prepared] = {}
        self._portals: dict[str, _Bound] = {}
        self._cursors: dict[str, tuple[Portal, bool]] = {}
        self._has_failed = False
        self._skips_to_sync = False
        self._busy = threading.Lock()

    def interrupt(self, reason: str) -> None:
        """Ends the statement that runs now, from another thread."""
        self._asking.interruption.interrupt(reason)

    def insist(self) -> None:
        """Repeats an interruption that has had no effect yet."""
        self._asking.interruption.insist()

    def stop(self, reason: str) -> None:
        """Ends the running statement and all later statements, from another thread."""
        self._asking.interruption.stop(reason)

    def part(self, answers: Iterator[bytes], nbytes: int) -> bytes:
        """The next answers, up to a number of bytes and one answer more; empty at the end."""
        parts: list[bytes] = []
        with self._busy:
            for answer in answers:
                parts.append(answer)
                nbytes -= len(answer)
                if nbytes <= 0:
                    break
        return b"".join(parts)

    def answers(self, received: Sequence[wire.Message]) -> Iterator[bytes]:
        """The answers to messages, in order, as they are computed."""
        for message in received:
            if self._skips_to_sync and not isinstance(message, wire.Sync):
                continue
            try:
                yield from self._answer(message)
            except Exception as error:
                self._fail()
                yield wire.error_response(_shown(error))
                if isinstance(message, wire.Query) or (isinstance(message, wire.Refused) and message.is_query):
                    yield wire.ready(self._status)
                else:
                    self._skips_to_sync = True

    def close(self) -> None:
        """Drops everything, as soon as no other thread computes an answer."""
        with self._busy:
            self._end_transaction(is_rollback=True)
            self._close_cursors(kept_too=True)
            self._asking.close()

    @property
    def _status(self) -> bytes:
        return b"I" if not self._asking.in_transaction else b"E" if self._has_failed else b"T"

    def _fail(self) -> None:
        if self._asking.in_transaction:
            self._has_failed = True
        else:
            self._close_portals()

    def _answer(self, message: wire.Message) -> Iterator[bytes]:
        match message:
            case wire.Query(text):
                yield from self._simple(text)
            case wire.Parse():
                yield self._parse(message)
            case wire.Bind():
                yield self._bind(message)
            case wire.Describe(is_portal, name):
                yield from self._describe_portal(name) if is_portal else self._describe_statement(name)
            case wire.Execute(name, max_rows):
                yield from self._execute(self._bound(name), max_rows or None)
            case wire.Close(is_portal, name):
                self._close_one(name) if is_portal else self._prepared.pop(name, None)
                yield wire.CLOSE_COMPLETE
            case wire.Sync():
                self._skips_to_sync = False
                if not self._asking.in_transaction:
                    self._close_portals()
                yield wire.ready(self._status)
            case wire.Flush():
                pass
            case wire.Refused(_, error):
                raise error
            case _:
                raise SqlError(PROTOCOL_VIOLATION, f"a message {type(message).__name__} does not belong here")

    # ---- the simple protocol -----------------------------------------------------------------------------------------

    def _simple(self, text: str) -> Iterator[bytes]:
        found = statements(text)
        if not found:
            yield wire.EMPTY_QUERY
        for each in found:
            bound = _Bound(parsed(each), (), ())
            self._require_health(bound.statement)
            try:
                if _has_rows(bound.statement):
                    yield self._open(bound).description
                yield from self._execute(bound, None)
            finally:
                if bound.portal is not None and not isinstance(bound.statement, Fetch):
                    bound.portal.close()
        yield wire.ready(self._status)

    # ---- the extended protocol ---------------------------------------------------------------------------------------

    def _parse(self, message: wire.Parse) -> bytes:
        if message.name and message.name in self._prepared:
            raise SqlError("42P05", f"there is a prepared statement {message.name!r} already: close it first")
        _require_room(self._prepared, _MOST_PREPARED, "prepared statements")
        found = statements(message.text)
        if len(found) > 1:
            raise SqlError("42601", "a prepared statement is one statement: send them one by one")
        statement = parsed(found[0]) if found else None
        self._require_health(statement)
        types = list(message.types)
        types += [0] * (self._parameter_count(statement) - len(types))
        # A query is kept with its tree, which is some times as long.
        kept = sum(each.nbytes for name, each in self._prepared.items() if name != message.name)
        if kept + len(message.text) > _MOST_KEPT_BYTES:
            raise SqlError(TOO_MUCH, f"prepared statements have more than {_MOST_KEPT_BYTES >> 20} MiB: close some")
        self._prepared[message.name] = _Prepared(statement, tuple(types), len(message.text))
        return wire.PARSE_COMPLETE

    def _parameter_count(self, statement: Statement | None) -> int:
        if isinstance(statement, Declare):
            statement = Question(statement.query)
        return self._asking.parameter_count(statement) if isinstance(statement, Question) else 0

    def _bind(self, message: wire.Bind) -> bytes:
        prepared = self._prepared_as(message.statement)
        self._require_health(prepared.statement)
        count = len(prepared.types)
        if len(message.values) != count:
            raise SqlError(PROTOCOL_VIOLATION, f"the statement has {count} parameters, {len(message.values)} are given")
        formats = message.formats * count if len(message.formats) == 1 else message.formats or (wire.TEXT,) * count
        if len(formats) != count:
            raise SqlError(PROTOCOL_VIOLATION, "the formats do not fit the parameters")
        if message.portal and message.portal in self._portals:
            raise SqlError("42P03", f"there is a portal {message.portal!r} already: close it first")
        self._close_one(message.portal)
        _require_room(self._portals, _MOST_PORTALS, "portals")
        literals = tuple(map(literal, prepared.types, message.values, formats))
        self._portals[message.portal] = _Bound(prepared.statement, literals, message.result_formats)
        return wire.BIND_COMPLETE

    def _describe_statement(self, name: str) -> Iterator[bytes]:
        prepared = self._prepared_as(name)
        # A parameter without a type is said to be text: any value is taken as it is used.
        yield wire.parameter_description([oid or TEXT.oid for oid in prepared.types])
        if not _has_rows(prepared.statement):
            yield wire.NO_DATA
            return
        nulls = tuple(literal(oid, None, wire.TEXT) for oid in prepared.types)
        yield wire.row_description(wire_columns(self._schema(prepared.statement, nulls)))

    def _describe_portal(self, name: str) -> Iterator[bytes]:
        if name in self._cursors and name not in self._portals:
            # A cursor is a portal, too: psycopg asks for the columns that it declared.
            yield self._cursor(name).description
            return
        bound = self._bound(name)
        yield self._open(bound).description if _has_rows(bound.statement) else wire.NO_DATA

    def _execute(self, bound: _Bound, count: int | None) -> Iterator[bytes]:
        self._require_health(bound.statement)
        statement = bound.statement
        if statement is None:
            yield wire.EMPTY_QUERY
        elif isinstance(statement, Fetch) and statement.is_move:
            yield wire.command_complete(f"MOVE {self._cursor(statement.name).skip(statement.count)}")
        elif isinstance(statement, Fetch):
            portal = self._open(bound)
            before = portal.sent
            yield from portal.take(statement.count)
            yield wire.command_complete(f"FETCH {portal.sent - before}")
        elif _has_rows(statement):
            portal = self._open(bound)
            yield from portal.take(count)
            is_suspended = count is not None and not portal.is_over
            tag = "SHOW" if isinstance(statement, Show) else f"SELECT {portal.sent}"
            yield wire.PORTAL_SUSPENDED if is_suspended else wire.command_complete(tag)
        else:
            yield from self._perform(statement, bound.literals)

    # ---- statements --------------------------------------------------------------------------------------------------

    def _open(self, bound: _Bound) -> Portal:
        """The portal of a statement with rows, asked for once."""
        if bound.portal is None:
            if isinstance(bound.statement, Fetch):
                bound.portal = self._cursor(bound.statement.name).in_formats(bound.formats)
            elif isinstance(bound.statement, Show):
                bound.portal = Portal(TableRows(self._shown(bound.statement)), bound.formats)
            elif isinstance(bound.statement, Question):
                bound.portal = self._asked(bound.statement, bound.literals, bound.formats)
        assert bound.portal is not None
        return bound.portal

    def _asked(self, question: Question, literals: tuple[str, ...], formats: tuple[int, ...] = ()) -> Portal:
        rows = self._asking.rows(question, literals, self._settings.epoch)
        try:
            return Portal(rows, formats, self._limits)
        except BaseException:
            rows.close()
            raise

    def _schema(self, statement: Statement | None, literals: tuple[str, ...]) -> pa.Schema:
        if isinstance(statement, Fetch):
            return self._cursor(statement.name).schema
        if isinstance(statement, Show):
            return self._shown(statement).schema
        assert isinstance(statement, Question)
        return self._asking.schema(statement, literals, self._settings.epoch)

    def _perform(self, statement: Statement, literals: tuple[str, ...]) -> Iterator[bytes]:
        match statement:
            case Transaction(step):
                yield from self._step(step)
            case Setting():
                yield from self._set(statement)
            case Forget(name, tag):
                self._forget(name, tag)
                yield wire.command_complete(tag)
            case Declare():
                self._declare(statement, literals)
                yield wire.command_complete("DECLARE CURSOR")
            case CloseCursor(name):
                self._close_cursor(name)
                yield wire.command_complete("CLOSE CURSOR")

    def _step(self, step: str) -> Iterator[bytes]:
        tag = step
        if step == "BEGIN":
            if self._asking.in_transaction:
                yield wire.notice(SqlError("25001", "there is already a transaction in progress"))
            else:
                self._asking.begin(self._settings.epoch)
        elif step in ("COMMIT", "ROLLBACK"):
            if not self._asking.in_transaction:
                yield wire.notice(SqlError("25P01", "there is no transaction in progress"))
            tag = "ROLLBACK" if self._has_failed else step
            self._end_transaction(is_rollback=tag == "ROLLBACK")
        elif not self._asking.in_transaction:
            raise SqlError("25P01", f"{step} needs a transaction: send BEGIN first")
        else:
            # Nothing was written: to go back to a savepoint is to go on.
            self._has_failed = False
            tag = "ROLLBACK" if step == "ROLLBACK TO" else step
        yield wire.command_complete(tag)

    def _end_transaction(self, *, is_rollback: bool) -> None:
        self._has_failed = False
        self._close_portals()
        self._close_cursors(kept_too=is_rollback and self._asking.in_transaction)
        self._asking.end()

    def _set(self, setting: Setting) -> Iterator[bytes]:
        if setting.name == EPOCH and self._asking.in_transaction:
            raise SqlError("25001", f"a transaction sees one epoch: SET {EPOCH} before BEGIN, or after its end")
        if setting.name == EPOCH and setting.value is not None:
            self._asking.require_epoch(setting.value)
        for name, value in self._settings.set(setting.name, setting.value):
            yield wire.parameter_status(name, value)
        yield wire.command_complete("RESET" if setting.is_reset else "SET")

    def _shown(self, show: Show) -> pa.Table:
        if show.name == EPOCH:
            return pa.table({EPOCH: [self._asking.shown_epoch(self._settings.epoch)]})
        if show.name == "all":
            known = self._settings.all()
            return pa.table({"name": list(known), "setting": list(known.values())})
        return pa.table({show.name: [self._settings.get(show.name)]})

    def _forget(self, name: str | None, tag: str) -> None:
        if name is not None:
            if self._prepared.pop(name, None) is None:
                raise SqlError("26000", f"there is no prepared statement {name!r}")
            return
        self._prepared.clear()
        if tag == "DISCARD ALL":
            if self._asking.in_transaction:
                raise SqlError("25001", "DISCARD ALL cannot run inside a transaction: send COMMIT first")
            self._close_cursors(kept_too=True)
            self._settings.reset()

    def _declare(self, declare: Declare, literals: tuple[str, ...]) -> None:
        if not self._asking.in_transaction and not declare.is_kept:
            raise SqlError("25P01", "a cursor lives in a transaction: send BEGIN first, or declare it WITH HOLD")
        if declare.name in self._cursors:
            raise SqlError("42P03", f"there is a cursor {declare.name!r} already: close it first")
        _require_room(self._cursors, _MOST_CURSORS, "cursors")
        self._cursors[declare.name] = self._asked(Question(declare.query), literals), declare.is_kept

    def _cursor(self, name: str) -> Portal:
        found = self._cursors.get(name)
        if found is None:
            raise SqlError("34000", f"there is no cursor {name!r}: it ended with its transaction, or was not declared")
        return found[0]

    def _close_cursor(self, name: str | None) -> None:
        if name is None:
            self._close_cursors(kept_too=True)
            return
        self._cursor(name).close()
        del self._cursors[name]

    def _close_cursors(self, *, kept_too: bool) -> None:
        for name, (portal, is_kept) in list(self._cursors.items()):
            if kept_too or not is_kept:
                del self._cursors[name]
                portal.close()

    # ---- names -------------------------------------------------------------------------------------------------------

    def _prepared_as(self, name: str) -> _Prepared:
        if name not in self._prepared:
            raise SqlError("26000", f"there is no prepared statement {name!r}")
        return self._prepared[name]

    def _bound(self, name: str) -> _Bound:
        if name not in self._portals:
            raise SqlError("34000", f"there is no portal {name!r}")
        return self._portals[name]

    def _close_one(self, name: str) -> None:
        bound = self._portals.pop(name, None)
        if bound is not None and bound.portal is not None and not isinstance(bound.statement, Fetch):
            bound.portal.close()

    def _close_portals(self) -> None:
        for name in list(self._portals):
            self._close_one(name)

    def _require_health(self, statement: Statement | None) -> None:
        is_end = isinstance(statement, Transaction) and statement.step in ("COMMIT", "ROLLBACK", "ROLLBACK TO")
        if self._has_failed and not is_end:
            raise _IN_FAILED


def _require_room(kept: Sized, most: int, what: str) -> None:
    if len(kept) >= most:
        raise SqlError(TOO_MUCH, f"there are {most:,} {what} in this session: close some")


def _has_rows(statement: Statement | None) -> bool:
    return isinstance(statement, (Question, Show)) or (isinstance(statement, Fetch) and not statement.is_move)


def _shown(error: Exception) -> SqlError:
    if isinstance(error, SlackwaterError):
        return error_of_store(error)
    _log.exception("statement failed")
    reason: Any = redact(str(error))
    return SqlError("XX000", f"{type(error).__name__}: {reason} (an unexpected error: please report it)")
