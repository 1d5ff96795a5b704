"""JSON documents of a root, as the page shows them."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import slackwater
from actors.telemetry.logging import redact
from slackwater.reading.store import Store
from slackwater.status.run_status import RunStatus
from slackwater.status.text import jsonable
from slackwater.watching.owner_watch import OwnerWatch
from state.clock import Clock
from state.epoch import epoch_time
from state.ownership.owner import Owner

_LONGEST_CELL = 500
_LONGEST_RAW = 4096


def cell(value: Any) -> Any:
    """A value of a row for the page: a number, a boolean, null, or text; a nested value as JSON text."""
    plain = jsonable(value)
    if isinstance(plain, (dict, list)):
        plain = json.dumps(plain, ensure_ascii=False)
    if isinstance(plain, str) and len(plain) > _LONGEST_CELL:
        return f"{plain[:_LONGEST_CELL]}… ({len(plain):,} characters)"
    return plain


def raw_text(raw: bytes) -> str:
    r"""The beginning of a record as text, with escapes such as `\xff` for bytes that are not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    return decoder.decode(raw[:_LONGEST_RAW], final=len(raw) <= _LONGEST_RAW)


Document = Mapping[str, Any]
"""A value for JSON.  Its texts are the unchanged texts of the root, and none of them is markup."""

_MOST_COLUMNS = 100
_OWNER = ("pipeline", "host", "pid", "since", "renewed_at", "phase", "last_error", "fetchers", "scaling")


class RootDocuments:
    """Reads a root.  Every method blocks, and may be called from any thread.

    Args:
        store: the store of the root.
        clock: the clock that ages are reckoned from.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._watch = OwnerWatch(clock)

    def now(self) -> Document:
        """The owner, the status of its run, and the last epoch; cheap enough for every second."""
        owner = self._store.owner()
        life = self._watch.look(owner)
        epoch = self._store.latest_epoch()
        return _plain(
            {
                "root": self._store.root,
                "version": slackwater.__version__,
                "now": self._clock.now(),
                "state": life.state,
                "runs": life.runs,
                "owner": None if owner is None else _owner(owner),
                "status": _status(owner),
                "epoch": epoch or None,
                "committed_at": epoch_time(epoch) if epoch else None,
            }
        )

    def epochs(self) -> list[Document]:
        """Every retained epoch, the oldest first, with the names of the views that it changed."""
        before: dict[str, tuple[str, int]] = {}
        found = []
        for row in self._store.epochs().to_pylist():
            views = {view["name"]: (view["path"], view["version"]) for view in row.pop("views")}
            changed = sorted(name for name, version in views.items() if before and before.get(name) != version)
            before = views
            found.append(_plain({**row, "changed": changed}))
        return found

    def sources(self) -> Document:
        """The sources, with the number of their files in each status."""
        sources = self._store.sources().to_pylist()
        counts = self._store.count_files().to_pylist()
        for source in sources:
            mine = [row for row in counts if row["source"] == source["name"]]
            source["files"] = {row["status"]: row["files"] for row in mine}
            source["rows"] = sum(row["rows_read"] - row["rows_bad"] for row in mine)
            source["rows_bad"] = sum(row["rows_bad"] for row in mine)
        return _plain({"sources": sources})

    def views(self) -> Document:
        """The views, with their lag behind the last epoch in seconds, and the backfills."""
        latest = self._store.latest_epoch()
        views = self._store.views().to_pylist()
        for view in views:
            reflects = view["reflects_epoch"]
            behind = None if reflects is None else (epoch_time(latest) - epoch_time(reflects)).total_seconds()
            view["behind_s"] = behind
        return _plain({"epoch": latest or None, "views": views, "backfills": self._store.backfills().to_pylist()})

    def sample(self, view: str, limit: int) -> Document:
        """Some rows of a view at the last epoch."""
        snapshot = self._store.snapshot()
        shown = snapshot.view(view)
        schema = shown.schema
        rows = shown.head(limit).select(schema.names[:_MOST_COLUMNS])
        columns = [{"name": field.name, "type": str(field.type)} for field in rows.schema]
        # A row is a list: a column name may equal a built-in property of JavaScript objects.
        cells = zip(*(map(cell, rows[name].to_pylist()) for name in rows.column_names), strict=True)
        return _plain(
            {
                "view": view,
                "epoch": snapshot.epoch,
                "rows": shown.count_rows(),
                "columns": columns,
                "left_out": len(schema.names) - len(columns),
                "sample": list(cells),
            }
        )

    def files(self, text: str, source: str | None, status: str | None, after: str | None, limit: int) -> Document:
        """A page of the ledger."""
        page = self._store.find_files(text, source=source, status=status, after=after, limit=limit)
        return _plain({"matches": page.matches, "after": page.after, "files": page.rows.to_pylist()})

    def story(self, path: str) -> Document:
        """The story of one object, and the views that have its rows."""
        story = self._store.why(path)
        views = [
            view["name"]
            for view in self._store.views().to_pylist()
            if story.source in view["sources"] and story.path not in view["missing"]
        ]
        return _plain({**asdict(story), "views": views})

    def quarantine(self, source: str | None, after: str | None, limit: int) -> Document:
        """A page of the bad records."""
        page = self._store.find_bad_records(source, after=after, limit=limit)
        records = []
        for record in page.rows.to_pylist():
            raw = record.pop("raw") or b""
            records.append({**record, "raw": raw_text(raw), "raw_bytes": len(raw)})
        return _plain({"matches": page.matches, "after": page.after, "records": records})


def _owner(owner: Owner) -> Document:
    return {**{name: getattr(owner, name) for name in _OWNER}, "last_error": redact(owner.last_error)}


def _status(owner: Owner | None) -> Document | None:
    """The status that the run last wrote; None if this version cannot read it."""
    status = None if owner is None or owner.status is None else RunStatus.of_json(owner.status)
    if status is None:
        return None
    edges = [{**asdict(edge), "is_full": edge.is_full} for edge in status.edges]
    return {**status.to_json(), "edges": edges, "message": redact(status.message)}


def _plain(document: Mapping[str, Any]) -> Document:
    plain: Document = jsonable(document)
    return plain
