"""Late rows as rows of the quarantine: each with its file, its position there, and the view that did not take it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from actors.formats.salvage import row_as_json
from actors.schemas.metadata_columns import PATH, ROW
from spark_bridge.hand_over.epoch_rows import LateRows
from state.tables.delta import Delta, DeltaBuilder
from state.tables.keys import encode_key
from state.vnode import vnode_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_VERSION = b""
"""In place of the version of the file in the key: a late row is a good record of its file, and other views have it.

`state.upkeep.quarantine.late_rows` finds the rows of a view by this key.
"""


def late_delta(late: Iterable[LateRows], urls: Mapping[str, str]) -> Delta:
    """The rows of the table `quarantine`.

    Args:
        late: the late rows of an epoch.
        urls: source → its URL.
    """
    delta = DeltaBuilder()
    for each in late:
        closed = _EPOCH + timedelta(microseconds=each.closed)
        reason = f"view {each.view}: its window was closed, by the watermark {closed:%Y-%m-%d %H:%M:%S.%f} UTC"
        paths, rows = (each.rows.column(name).to_pylist() for name in (PATH, ROW))
        shown = each.rows.drop_columns([PATH, ROW])
        for at, (url, row) in enumerate(zip(paths, rows, strict=True)):
            path = url.removeprefix(f"{urls.get(each.source, '')}/")
            delta.put(
                "quarantine",
                encode_key(each.source, path, _NO_VERSION, row, each.view),
                vnode_of(path),
                source=each.source,
                path=path,
                row=row,
                raw=row_as_json(shown, at),
                reason=reason,
            )
    return delta.build()
