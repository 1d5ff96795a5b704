"""`slackwater sql`: the answer to a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.cli.terminal.output import Output
from state.errors import UsageError

if TYPE_CHECKING:
    from slackwater.reading.snapshot import Snapshot


def print_answer(snapshot: Snapshot, query: str, output: Output) -> None:
    """Prints every row.

    Raises:
        UsageError: as `Snapshot.sql`; or two columns have one name, and one of them would hide the other.
    """
    answer = snapshot.sql(query)
    twice = next((name for name in answer.column_names if answer.column_names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two columns of the answer are called {twice!r}: give one of them another name with AS")
    output.table(answer, title=f"epoch {snapshot.epoch}")
