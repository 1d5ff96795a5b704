"""`slackwater status`: one screen about a root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from slackwater.cli.output import Output

if TYPE_CHECKING:
    import pyarrow as pa

    from slackwater.store import Store

_STATUSES = ("waiting", "reading", "done", "quarantined", "vanished")
_SHOWN_QUARANTINED = 10
_VIEW_COLUMNS = ("name", "class", "rows", "version", "path")


def print_status(store: Store, output: Output) -> None:
    """Prints who owns the root, the last epoch, its sources, its views, and the files that could not be read."""
    owner = store.owner()
    epochs = store.epochs()
    last: Mapping[str, Any] | None = epochs.slice(epochs.num_rows - 1).to_pylist()[0] if epochs.num_rows else None
    files = store.files()
    sources = [_source(row, files) for row in store.sources().to_pylist()]
    views = store.views().to_pylist()
    quarantined = [row for row in files.select(["source", "path", "status", "error"]).to_pylist() if _is_bad(row)]
    if output.json:
        output.document(
            {
                "owner": asdict(owner) if owner else None,
                "epoch": last,
                "sources": sources,
                "views": views,
                "quarantined": quarantined,
            }
        )
        return
    if owner is None:
        output.text("owner: none")
    else:
        error = f"; last error: {owner.last_error}" if owner.last_error else ""
        output.text(f"owner: {owner.phase}, process {owner.pid} on {owner.host}, pipeline {owner.pipeline}{error}")
    output.text("epoch: none yet" if last is None else f"epoch: {last['epoch']}, committed at {last['committed_at']}")
    output.rows(sources, list(sources[0]) if sources else ["name"], title="sources")
    output.rows(views, _VIEW_COLUMNS, title="views: any Lance reader opens a path at its tag `committed`")
    if quarantined:
        shown = quarantined[:_SHOWN_QUARANTINED]
        output.rows(shown, ("source", "path", "error"), title=f"quarantined: {len(quarantined):,}")
        output.text("`slackwater files ROOT --status quarantined` shows all of them")


def _source(source: Mapping[str, Any], files: pa.Table) -> Mapping[str, Any]:
    """A source with the number of its files in each status, and its rows."""
    import pyarrow.compute as pc

    mine = files.filter(pc.equal(files["source"], source["name"]))
    counts = {row["values"]: row["counts"] for row in pc.value_counts(mine["status"]).to_pylist()}
    return {
        "name": source["name"],
        "url": source["url"],
        "format": source["format"],
        **{status: counts.get(status, 0) for status in _STATUSES},
        "rows": pc.sum(mine["rows_read"]).as_py() or 0,
        "listed_at": source["listed_at"],
    }


def _is_bad(row: Mapping[str, Any]) -> bool:
    return bool(row["status"] == "quarantined")
