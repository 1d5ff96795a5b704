"""SQL over the views of one epoch, computed by DuckDB in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from slackwater.reading.view_reader import ViewReader
from slackwater.reading.view_relation import ViewRelation
from state.errors import UsageError

_FILES = "files"
_CONFINED = (
    "SET TimeZone = 'UTC'; SET autoinstall_known_extensions = false; SET enable_external_access = false; "
    "SET lock_configuration = true"
)


def run_query(text: str, views: Mapping[str, ViewReader], files: Callable[[], pa.Table], place: str) -> pa.Table:
    """The result of one SELECT, see `Snapshot.sql`.

    Args:
        text: the query.
        views: the views that it may name.
        files: returns the ledger.
        place: the epoch and the root, for messages.

    Raises:
        UsageError: DuckDB is not installed or refuses the query, or the query is not one SELECT.
        EpochExpiredError, StorageError: a view or the ledger cannot be read.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise UsageError("SQL over views needs DuckDB; pip install 'slackwater[verify]'") from None
    relations: list[ViewRelation] = []
    with duckdb.connect() as connection:
        try:
            connection.execute(_CONFINED)
            kinds = [statement.type.name for statement in connection.extract_statements(text)]
            if kinds != ["SELECT"]:
                raise UsageError(f"SQL over views is one SELECT; given: {', '.join(kinds) or 'nothing'}")
            for name, reader in _named(text, views).items():
                relations.append(ViewRelation(reader))
                connection.register(name, relations[-1])
            if _FILES in text.casefold() and _FILES not in {name.casefold() for name in views}:
                connection.register(_FILES, files())
            return connection.sql(text).to_arrow_table()
        except duckdb.Error as error:
            failure = next((each.failure for each in relations if each.failure is not None), None)
            if failure is not None:
                raise failure from error
            raise UsageError(f"{_reason(error)}; the views at {place} are: {', '.join(views) or 'none'}") from None


def _named(text: str, views: Mapping[str, ViewReader]) -> dict[str, ViewReader]:
    """The views whose names occur in a query; only they are opened.

    Raises:
        UsageError: two of them differ only in case, which DuckDB ignores.
    """
    named = {name: reader for name, reader in views.items() if name.casefold() in text.casefold()}
    alike = {name.casefold(): name for name in named}
    for name in named:
        if alike[name.casefold()] != name:
            raise UsageError(
                f"SQL cannot tell view {name!r} from {alike[name.casefold()]!r}: read them with to_arrow()"
            )
    return named


def _reason(error: Exception) -> str:
    """An error of DuckDB in one line, without its drawing of the position."""
    return " ".join(str(error).partition("\n\nLINE ")[0].split())
