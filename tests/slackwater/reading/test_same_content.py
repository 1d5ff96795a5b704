"""Copies and renamed files are reported: their rows count again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from actors.objects.object_store import ObjectStore
from state.location import Location
from state.tables.catalog import put_source
from state.tables.records import CatalogSource
from tests.slackwater.cli.command import slackwater
from tests.slackwater.reading.written_root import RootWriter


def _writer(tmp_path: Path, raw: str) -> RootWriter:
    writer = RootWriter(Location(str(tmp_path / "root")), Location(raw))
    put_source(writer.delta, CatalogSource("flights", json.dumps({"url": writer.raw.url}), None))
    return writer


def _names(tmp_path: Path, source: str | None = None) -> list[str]:
    rows = sw.open(tmp_path / "root").ledger.same_content(source)
    return [path.rpartition("/")[2] for path in rows["path"].to_pylist()]


def test_in_a_bucket_equal_strong_etags_and_sizes_are_the_same_content(tmp_path: Path) -> None:
    writer = _writer(tmp_path, "s3://raw/in")
    files: list[tuple[str, int, str, dict[str, Any]]] = [
        ("a.csv", 100, '"one"', {}),
        ("copy.csv", 100, '"one"', {}),
        ("longer.csv", 101, '"one"', {}),
        ("other.csv", 100, '"two"', {}),
        ("weak.csv", 100, 'W/"w"', {}),
        ("weak-copy.csv", 100, 'W/"w"', {}),
        ("unread.csv", 100, '"one"', {"rows_read": 0}),
        ("forgotten.csv", 100, '"one"', {"status": "forgotten"}),
        ("empty.csv", 0, '"e"', {}),
        ("empty-copy.csv", 0, '"e"', {}),
    ]
    for name, size, etag, fields in files:
        writer.finish(name, size=size, etag=etag, **{"rows_read": 5, **fields})
    writer.commit()
    assert _names(tmp_path) == _names(tmp_path, "flights") == ["a.csv", "copy.csv"]
    shown = sw.open(tmp_path / "root").ledger.same_content()
    assert shown["content"].to_pylist() == ['etag "one"'] * 2
    with pytest.raises(sw.errors.NotFoundError, match="nothing"):
        _names(tmp_path, "nothing")
    ended = slackwater("files", str(tmp_path / "root"), "--same-content", "--json")
    assert ended.code == 0 and "copy.csv" in ended.out and "other.csv" not in ended.out
    assert slackwater("files", str(tmp_path / "root"), "--same-content", "--status", "done").code == 2


def test_in_a_local_directory_the_bytes_are_compared(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    (raw / "old").mkdir(parents=True)
    for name, content in {"a.csv": "id\n1\n", "old/b.csv": "id\n1\n", "c.csv": "id\n2\n", "d.csv": "id\n1\n"}.items():
        (raw / name).write_text(content)
    writer = _writer(tmp_path, str(raw))
    for page in ObjectStore(writer.raw).list_pages():
        for path, etag, size, modified in page.objects():
            writer.finish(path, size=size, etag=etag, last_modified=modified, rows_read=1)
    writer.commit()
    (raw / "d.csv").write_text("id\n3\n")  # not the version that was read
    assert _names(tmp_path) == ["a.csv", "b.csv"]
    (raw / "a.csv").unlink()
    assert _names(tmp_path) == []
