"""A root with hostile text in everything that comes from outside; a page must not misread it."""

from __future__ import annotations

import json

import pyarrow as pa

from state.lance import view_dataset
from state.location import Location
from state.tables.catalog import CatalogPipeline, put_pipeline, put_source, put_unmatched, put_view
from state.tables.fingerprint import version_fingerprint
from state.tables.keys import encode_key
from state.tables.records import CatalogSource, CatalogView, UnmatchedColumn, ViewVersion
from tests.slackwater.reading.written_root import RAW_SCHEMA, START, RootWriter

RUN_ME = "<img src=x onerror=executed=1>"
SCRIPT = "</script><script>executed=1</script>"
LINK = "javascript:executed=1"
PROTO = "__proto__"


def write_hostile_root(root: Location, raw: Location) -> RootWriter:
    """A source, an append view with a row, a file that is done, one that is bad, and a bad record."""
    writer = RootWriter(root, raw)
    put_pipeline(writer.delta, CatalogPipeline(RUN_ME, ansi=False))
    definition = {"url": raw.url, "format": {"name": RUN_ME}, "pattern": f"**/{RUN_ME}"}
    put_source(writer.delta, CatalogSource("flights", json.dumps(definition), RAW_SCHEMA.serialize().to_pybytes()))
    put_unmatched(writer.delta, UnmatchedColumn("flights", RUN_ME, f"day=1/{RUN_ME}.csv", writer.epoch))
    view = CatalogView("late", "append", f"SELECT '{SCRIPT}' {RUN_ME}", "plan", ("flights",), (), writer.epoch)
    put_view(writer.delta, view)
    rows = pa.table({RUN_ME: [RUN_ME, LINK], PROTO: [SCRIPT, "\u202egpj.exe"], "n": [1, 2]})
    dataset = f"views/late-{writer.epoch}.lance"
    writer.views["late"] = ViewVersion("late", dataset, view_dataset.create(root.child(dataset), rows).version)
    writer.finish(f"day=1/{RUN_ME}.csv", rows_read=2)
    writer.finish(f"day=1/{SCRIPT}.csv", status="quarantined", rows_read=0, error=f"row 3: '{RUN_ME}' is no bigint")
    version = version_fingerprint('"e"', 100, START)
    path = f"day=1/{RUN_ME}.csv"
    bad = {"source": "flights", "path": path, "version": version, "row": 7, "reason": RUN_ME}
    record = f"{SCRIPT}{RUN_ME}\x1b[2J\xff".encode("latin-1")
    writer.delta.put("quarantine", encode_key("flights", path, version, 7), 1, **bad, raw=record)
    writer.commit(files=2, rows=2)
    return writer
