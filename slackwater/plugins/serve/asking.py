"""Queries of a session, answered by the index of the keys, by DuckDB, or by the catalog for tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from slackwater.confinement.query_parser import ParsedQuery, QueryParser, RefusedQueryError
from slackwater.plugins.serve.catalog_database import for_tools
from slackwater.plugins.serve.engine import Interruption
from slackwater.plugins.serve.look_up import key_value, look_up_of
from slackwater.plugins.serve.portal import RowSource, TableRows
from slackwater.plugins.serve.served_epoch import ServedEpoch
from slackwater.plugins.serve.served_root import LATEST, ServedRoot
from slackwater.plugins.serve.session_engine import SessionEngine
from slackwater.plugins.serve.sql_error import SqlError, refusal
from slackwater.plugins.serve.statement import Question
from state.errors import ViewNotFoundError
from state.tables.expectations import PUBLISHED


@dataclass(frozen=True)
class _Parsed:
    """A query as a query over views, and as a query about the catalog.  At least one of both is set.

    Args:
        over_catalog: the query in DuckDB's dialect, if it names the catalog.
        error: the reason for the lack of `over_views`.
    """

    over_views: ParsedQuery | None
    over_catalog: ParsedQuery | None
    error: SqlError | None

    @property
    def parameter_count(self) -> int:
        return max(each.parameter_count for each in (self.over_views, self.over_catalog) if each is not None)

    def names_view(self, epoch: ServedEpoch) -> bool:
        assert self.over_catalog is not None
        return not self.over_catalog.tables.isdisjoint(each.casefold() for each in epoch.snapshot.views)


class Asking:
    """The queries of one session, and the epoch of its transaction."""

    def __init__(self, root: ServedRoot, parser: QueryParser) -> None:
        self._root, self._parser = root, parser
        self._engine = SessionEngine(root.engines)
        self._pinned: ServedEpoch | None = None
        self._fixed: ServedEpoch | None = None
        self._fixed_as = ""
        self.interruption = Interruption()

    @property
    def in_transaction(self) -> bool:
        return self._pinned is not None

    def begin(self, epoch: str) -> None:
        """Begins a transaction: all its queries see this epoch."""
        self._pinned = self._epoch(epoch)

    def end(self) -> None:
        """Ends the transaction, if there is one."""
        self._pinned = None

    def close(self) -> None:
        """Releases DuckDB."""
        self.end()
        self._engine.close()

    def require_epoch(self, epoch: str) -> None:
        """Refuses an epoch that does not exist.

        Raises:
            EpochNotFoundError, UsageError: as `Store.snapshot`.
        """
        self._epoch(epoch)

    def shown_epoch(self, epoch: str) -> str:
        """The epoch that the next query sees, as a number."""
        return str(self._epoch(epoch).epoch)

    def parameter_count(self, question: Question) -> int:
        """The largest number of a parameter.

        Raises:
            SqlError: the query is refused.
        """
        try:
            return self._parse(question.text).parameter_count
        except RefusedQueryError as error:
            raise refusal(error) from None

    def rows(self, question: Question, literals: Sequence[str], epoch: str) -> RowSource:
        """The rows of a query.

        Args:
            literals: the values of its parameters.
            epoch: the epoch for a query outside of a transaction.

        Raises:
            SlackwaterError: the query is refused or fails.
        """
        try:
            return self._rows(question, literals, self._epoch(epoch))
        except RefusedQueryError as error:
            raise refusal(error) from None

    def _rows(self, question: Question, literals: Sequence[str], epoch: ServedEpoch) -> RowSource:
        parsed = self._parse(question.text)
        if parsed.parameter_count > len(literals):
            raise SqlError("42P02", f"parameter ${len(literals) + 1} lacks a value")
        if parsed.over_catalog is not None and not parsed.names_view(epoch):
            query = self._bound(parsed.over_catalog, literals)
            text = f"{question.explain} {query.text}" if question.explain else query.text
            return self._root.catalog(epoch).rows(text, self.interruption)
        if parsed.over_views is None:
            assert parsed.error is not None
            raise parsed.error
        looked_up = None if question.explain else _looked_up(epoch, parsed.over_views, literals)
        if looked_up is not None:
            return TableRows(looked_up)
        query = self._bound(parsed.over_views, literals)
        return self._engine.rows(epoch, query, question.explain, self.interruption)

    def schema(self, question: Question, literals: Sequence[str], epoch: str) -> pa.Schema:
        """The columns of the rows of a query."""
        if not question.explain:
            # DuckDB then computes no row.
            question = Question(f"SELECT * FROM ({question.text.rstrip().rstrip(';')}\n) LIMIT 0")
        rows = self.rows(question, literals, epoch)
        rows.close()
        return rows.schema

    def _parse(self, text: str) -> _Parsed:
        about_catalog = for_tools(text)
        over_catalog = None if about_catalog is None else self._parser.query(about_catalog)
        try:
            return _Parsed(self._parser.query(text), over_catalog, None)
        except RefusedQueryError as error:
            # PostgreSQL has operators and casts that DuckDB's parser does not know.
            if over_catalog is None or error.reason != "syntax":
                raise
            return _Parsed(None, over_catalog, refusal(error))

    def _bound(self, query: ParsedQuery, literals: Sequence[str]) -> ParsedQuery:
        return self._parser.query(query.bound(literals)) if query.parameters else query

    def _epoch(self, epoch: str) -> ServedEpoch:
        if self._pinned is not None:
            return self._pinned
        if epoch in (PUBLISHED, LATEST):
            self._fixed = None
            return self._root.epoch(epoch)
        if self._fixed is None or self._fixed_as != epoch:
            self._fixed, self._fixed_as = self._root.epoch(epoch), epoch
        return self._fixed


def _looked_up(epoch: ServedEpoch, query: ParsedQuery, literals: Sequence[str]) -> pa.Table | None:
    """The rows of a look-up by the whole key of a view; None for any other query."""
    look_up = look_up_of(query)
    if look_up is None:
        return None
    try:
        view = epoch.view(look_up.view)
    except ViewNotFoundError:
        return None
    if set(look_up.values) != set(view.key) or not set(look_up.columns) <= set(view.schema.names):
        return None
    key = {}
    for column, operand in look_up.values.items():
        value = key_value(operand, literals, view.schema.field(column).type)
        if value is None:
            return None
        key[column] = value
    return view.scan(**key).select(list(look_up.columns) or view.schema.names)
