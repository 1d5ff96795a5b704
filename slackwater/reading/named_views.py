"""Views that a query names."""

from __future__ import annotations

from collections.abc import Iterable

from slackwater.confinement.query_parser import ParsedQuery
from state.errors import UsageError


def named(query: ParsedQuery, names: Iterable[str]) -> list[str]:
    """The names that occur in a query as tables; all of them for a query that lists tables.

    Raises:
        UsageError: two of them differ only in case, which DuckDB ignores.
    """
    found = [name for name in names if query.lists_tables or name.casefold() in query.tables]
    alike = {name.casefold(): name for name in found}
    for name in found:
        if alike[name.casefold()] != name:
            raise UsageError(
                f"views {name!r} and {alike[name.casefold()]!r} have one name in SQL, which ignores case: "
                "read them with to_arrow()"
            )
    return found
