"""Catalogs of Iceberg whose calls end.

PyIceberg 0.12 sets no time limit: a server or a load balancer that drops a connection without a word, or a transaction
that another program left open, would stop a publication, or the start of a run, for ever.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import requests
from pyiceberg.catalog.rest import RestCatalog, auth
from pyiceberg.catalog.sql import SqlCatalog
from requests import Session
from sqlalchemy import Connection, Dialect, event

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 60.0
_DRIVERS = ("psycopg", "psycopg2")


class TimedRestCatalog(RestCatalog):
    """A REST catalog whose requests raise an OSError if the server does not answer.

    A commit without an answer may be carried out all the same: the table is read again before the next commit.
    """

    def _config_headers(self, session: Session) -> None:
        """Prepares a session.  PyIceberg calls it before the session sends its first request."""
        super()._config_headers(session)
        request = partial(session.request, timeout=_timeouts())
        session.request = request  # type: ignore[method-assign]


class TimedSqlCatalog(SqlCatalog):
    """A SQL catalog that waits for PostgreSQL for a limited time: for a connection, a statement and its locks.

    SQLite waits five seconds for a lock by itself.
    """

    def _init_catalog(self) -> None:
        """Prepares the engine.  PyIceberg calls it before the first connection."""
        if self.engine.dialect.name == "postgresql":
            event.listen(self.engine, "do_connect", _limit_connection)
            event.listen(self.engine, "begin", _limit_statements)
        super()._init_catalog()


def _timeouts() -> tuple[float, float]:
    return CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S


def _post(*arguments: Any, **options: Any) -> requests.Response:
    return requests.post(*arguments, **{"timeout": _timeouts(), **options})


# The requests for tokens of `auth.type=oauth2` belong to no session.
auth.requests = SimpleNamespace(post=_post)  # type: ignore[assignment, attr-defined]


def _limit_connection(dialect: Dialect, record: Any, arguments: Any, options: dict[str, Any]) -> None:
    """Adds limits of libpq to the parameters of a connection, unless the URI of the catalog has them."""
    if dialect.driver in _DRIVERS:
        options.setdefault("connect_timeout", round(CONNECT_TIMEOUT_S))
        options.setdefault("tcp_user_timeout", round(ANSWER_TIMEOUT_S * 1_000))


def _limit_statements(connection: Connection) -> None:
    """Limits one transaction: a pool between client and server may give the session to another client afterwards."""
    # The time in which a statement waits for a lock counts, too.
    connection.exec_driver_sql(f"SET LOCAL statement_timeout = {round(ANSWER_TIMEOUT_S * 1_000)}")
