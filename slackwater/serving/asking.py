"""Questions of a session, answered by the index of the keys, by DuckDB, or by the catalog for tools."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from slackwater.serving.catalog_database import is_for_tools
from slackwater.serving.engine import Interruption
from slackwater.serving.look_up import key_value, look_up_of
from slackwater.serving.portal import RowSource, TableRows
from slackwater.serving.served_epoch import ServedEpoch
from slackwater.serving.served_root import LATEST, ServedRoot
from slackwater.serving.sql_text import bound
from state.errors import ViewNotFoundError
from state.tables.expectations import PUBLISHED

_LONGEST_LOOK_UP = 2_000


class Asking:
    """The questions of one session, and the epoch of its transaction.

    Args:
        root: the epochs.
    """

    def __init__(self, root: ServedRoot) -> None:
        self._root = root
        self._pinned: ServedEpoch | None = None
        self._fixed: ServedEpoch | None = None
        self._fixed_as = ""
        self.interruption = Interruption()

    @property
    def in_transaction(self) -> bool:
        return self._pinned is not None

    def begin(self, epoch: str) -> None:
        """Begins a transaction: all its questions see this epoch."""
        self._pinned = self._hold(epoch)

    def end(self) -> None:
        """Ends the transaction, if there is one."""
        if self._pinned is not None:
            self._pinned.release()
            self._pinned = None

    def close(self) -> None:
        """Releases all epochs."""
        self.end()
        self._unfix()

    def require_epoch(self, epoch: str) -> None:
        """Refuses an epoch that does not exist.

        Raises:
            EpochNotFoundError, UsageError: as `Store.snapshot`.
        """
        self._hold(epoch).release()

    def shown_epoch(self, epoch: str) -> str:
        """The epoch that the next question sees, as a number."""
        held = self._hold(epoch)
        held.release()
        return str(held.epoch)

    def rows(self, text: str, literals: Sequence[str], epoch: str) -> RowSource:
        """The rows of a question.

        Args:
            text: the question.
            literals: the values of its parameters.
            epoch: the epoch, if there is no transaction.

        Raises:
            SlackwaterError: the question is refused or fails.
        """
        held = self._hold(epoch)
        try:
            found = _looked_up(held, text, literals)
            if found is not None:
                return TableRows(found)
            whole = bound(text, literals)
            if is_for_tools(whole, held.snapshot.views):
                return self._root.catalog(held).ask(whole, self.interruption)
            return held.ask(whole, self.interruption)
        finally:
            held.release()

    def schema(self, text: str, literals: Sequence[str], epoch: str) -> pa.Schema:
        """The columns of the rows of a question."""
        rows = self.rows(f"SELECT * FROM ({text}\n) LIMIT 0" if _is_plain(text) else text, literals, epoch)
        rows.close()
        return rows.schema

    def _hold(self, epoch: str) -> ServedEpoch:
        if self._pinned is not None:
            return self._pinned.hold()
        if epoch in (PUBLISHED, LATEST):
            self._unfix()
            return self._root.hold(epoch)
        if self._fixed is None or self._fixed_as != epoch:
            self._unfix()
            self._fixed, self._fixed_as = self._root.hold(epoch), epoch
        return self._fixed.hold()

    def _unfix(self) -> None:
        if self._fixed is not None:
            self._fixed.release()
            self._fixed = None


def _is_plain(text: str) -> bool:
    return text.lstrip()[:6].upper() == "SELECT"


def _looked_up(epoch: ServedEpoch, text: str, literals: Sequence[str]) -> pa.Table | None:
    """The rows of a look-up by the whole key of a view; None if the question is another one."""
    if len(text) > _LONGEST_LOOK_UP:
        return None
    look_up = look_up_of(text)
    if look_up is None:
        return None
    try:
        view = epoch.view(look_up.view)
    except ViewNotFoundError:
        return None
    if set(look_up.values) != set(view.key) or not set(look_up.columns) <= set(view.schema.names):
        return None
    key = {}
    for column, token in look_up.values.items():
        at = int(token.text[1:]) - 1 if token.kind == "parameter" else -1
        if at >= len(literals):
            return None
        value = key_value(literals[at] if at >= 0 else token.text, view.schema.field(column).type)
        if value is None:
            return None
        key[column] = value
    return view.scan(**key).select(list(look_up.columns) or view.schema.names)
