"""The readers over a directory: a line a file, a summary, and exit code 1 for a crash or an excess."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from tests.actors.formats.foreign_parquet import write_encrypted
from tests.actors.formats.written_files import flights, write_csv, write_orc, write_parquet
from tests.corpus.__main__ import Worker, main
from tests.corpus.worker import difference_of

_FILES = {
    "a/good.parquet": ("equal", write_parquet(flights(40), 13)),
    "a/good.orc": ("equal", write_orc(flights(40))),
    "a/good.csv.gz": ("equal", gzip.compress(write_csv(flights(40)), mtime=0)),
    "a/good.jsonl": ("equal", b'{"id": 1, "t": "a"}\n{"id": 2, "t": null}\n'),
    "a/lines.txt": ("read", b"a\nb\n"),
    "a/tabs.tsv": ("equal", b"id\tn\n1\t2\n"),
    "bad.csv": ("bad records", b"id,n\n1,2\n3\n"),
    "cut.parquet": ("refused", write_parquet(flights(40))[:-50]),
    "quoted.csv": ("different", b'id,t\n1,""\n2,b\n'),
    "encrypted.parquet": (
        "refused",
        write_encrypted(pa.table({"id": [1], "secret": ["a"]}), plaintext_footer=True, column_keys={"k": ["secret"]}),
    ),
    "deep.json": ("refused", b'{"a": ' + b"[" * 100_000),
    "null.json": ("equal", b'{"id": 1}\nnull\n'),
    "picture.png": ("skipped", b"\x89PNG\r\n"),
    "wide.csv": ("equal", ",".join(f"c{n}" for n in range(2_000)).encode() + b"\n" + b"1," * 1_999 + b"1\n"),
    "bad\udcff.csv": ("skipped", b"id\n1\n"),
    "line\nend.csv": ("equal", b"id\n1\n"),
}


def test_each_file_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, (_, content) in _FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "link.csv").symlink_to(tmp_path / "bad.csv")
    code = main([str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    shown = {line[24:].partition("  ")[0]: line[:11].strip() for line in lines[: len(_FILES)]}
    assert shown == {name.encode("unicode_escape").decode(): status for name, (status, _) in _FILES.items()}
    assert lines[len(_FILES) + 1].startswith(f"{len(_FILES)} files: 8 equal, 3 refused")
    assert code == 0


def test_a_file_beyond_the_memory_of_its_process_is_an_excess(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "large.csv").write_bytes(b"t\n" + b"x" * (40 << 20))
    (tmp_path / "small.csv").write_bytes(b"t\nx\n")
    assert main([str(tmp_path), "--memory", "120"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(("excess ", "crashed ")) and "large.csv" in lines[0]
    assert lines[1].startswith(("read ", "equal ")) and "small.csv" in lines[1]


def test_an_undocumented_error_and_the_end_of_a_process_are_crashes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id\n1\n")
    job = {"path": str(tmp_path / "a.csv"), "format": "csv", "kept": str(tmp_path / "missing" / "rows")}
    worker, ends = Worker("ours", 20, 4096), Worker("no role", 20, 4096)
    try:
        result = worker.result(job)
        assert (result["status"], result["detail"][:17]) == ("crashed", "FileNotFoundError")
        assert worker.result(job | {"kept": str(tmp_path / "rows")})["status"] == "read"
        assert ends.result(job) == {"status": "crashed", "detail": "the process ended with exit code 1"}
    finally:
        worker.close()
        ends.close()


def test_a_difference_is_named() -> None:
    table = pa.table({"id": [1, 2], "v": [1.5, float("nan")]})
    assert difference_of(table, table) == ""
    assert difference_of(table, table.slice(1)) == "2 rows, not 1"
    assert difference_of(table, table.drop_columns(["v"])).startswith("2 columns ['id', 'v'], not 1")
    assert difference_of(table, pa.table({"id": [1, 3], "v": ["1.5", "NaN"]})) == "column id, row 2: 2, not 3"
    assert difference_of(table, pa.table({"id": ["1", "x"], "v": [1.5, 0.0]})).startswith("column id: id bigint")
