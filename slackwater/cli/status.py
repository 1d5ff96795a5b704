"""`slackwater status`: one screen about a root."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from slackwater.cli.output import Output

if TYPE_CHECKING:
    from slackwater.store import Store

_SHOWN_QUARANTINED = 10


def print_status(store: Store, output: Output) -> None:
    """Prints who owns the root, the last epoch, its sources, its views, and the files that could not be read."""
    owner = store.owner()
    epochs = store.epochs()
    last: dict[str, Any] = epochs.slice(epochs.num_rows - 1).to_pylist()[0] if epochs.num_rows else {}
    quarantined = store.files(status="quarantined").select(["source", "path", "error"])
    if output.json:
        output.document(
            {
                "owner": asdict(owner) if owner else None,
                "epoch": last or None,
                "sources": store.sources().to_pylist(),
                "views": store.views().to_pylist(),
                "quarantined": quarantined.to_pylist(),
            }
        )
        return
    if owner:
        facts = ", ".join(f"{name} {value}" for name, value in asdict(owner).items() if value not in (None, ""))
        output.text(f"owner: {facts}")
    else:
        output.text("owner: none; nothing runs on this root")
    output.text(f"epoch: {last['epoch']}, committed {last['committed_at']}" if last else "epoch: none yet")
    output.table(store.sources(), title="sources")
    output.table(store.views(), title="views (any Lance reader opens a path at its tag `committed`)")
    if quarantined.num_rows:
        output.table(quarantined.slice(0, _SHOWN_QUARANTINED), title=f"quarantined: {quarantined.num_rows:,}")
        output.text("slackwater files ROOT --status quarantined shows all; slackwater why ROOT PATH explains one")
