"""Late rows as rows of the quarantine: each with its file, its position there, and the view that did not take it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from actors.formats.salvage import row_as_json
from actors.schemas.metadata_columns import PATH, ROW
from spark_bridge.ingest.epoch_rows import LateRows
from state.tables.delta import Delta, DeltaBuilder
from state.upkeep.quarantine import late_reason, late_row_key
from state.vnode import vnode_of


def late_delta(late: Iterable[LateRows], urls: Mapping[str, str], epoch: int) -> Delta:
    """The rows of the table `quarantine`.

    A row that is late for several windows is one of them.  The rows of two versions of a file, of which the view does
    not tell the version, are told apart by their epoch and content.

    Args:
        late: the late rows of an epoch.
        urls: source → its URL.
    """
    delta = DeltaBuilder()
    for each in late:
        reason = late_reason(each.view, each.what, each.closed)
        paths, rows = (each.rows.column(name).to_pylist() for name in (PATH, ROW))
        shown = each.rows.drop_columns([PATH, ROW])
        for at, (url, row) in enumerate(zip(paths, rows, strict=True)):
            path, raw = url.removeprefix(f"{urls.get(each.source, '')}/"), row_as_json(shown, at)
            content = blake2b(raw, digest_size=8).digest()
            delta.put(
                "quarantine",
                late_row_key(each.source, path, row, each.view, epoch, content),
                vnode_of(path),
                source=each.source,
                path=path,
                row=row,
                raw=raw,
                reason=reason,
            )
    return delta.build()
